// The conjugate families by name.
#pragma once
#include <stdexcept>
#include <string>

#include "_autoregressive_family.hpp"
#include "_count_laws.hpp"
#include "_dispersed_laws.hpp"
#include "_logistic_family.hpp"
#include "_normal_law.hpp"
#include "_wishart_family.hpp"

namespace skihmm {

inline Family *make_family(const std::string &name, const FamilySetting &setting) {
    if (name == "normal_inverse_gamma") return new NormalInverseGammaFamily(setting);
    if (name == "normal_inverse_wishart") return new NormalInverseWishartFamily(setting);
    if (name == "autoregressive_normal") return new AutoregressiveFamily(setting, false);
    if (name == "autoregressive_student") return new AutoregressiveFamily(setting, true);
    if (name == "gamma_poisson") return new IndependentColumns<PoissonLaw>(setting);
    if (name == "beta_bernoulli") return new IndependentColumns<BernoulliLaw>(setting);
    if (name == "negative_binomial") return new IndependentColumns<NegativeBinomialLaw>(setting);
    if (name == "gamma") return new IndependentColumns<GammaLaw>(setting);
    if (name == "von_mises") return new IndependentColumns<VonMisesLaw>(setting);
    if (name == "logistic") return new LogisticFamily(Regression::kBinary, setting);
    if (name == "binomial") return new LogisticFamily(Regression::kBinomial, setting);
    if (name == "log_linear") return new LogisticFamily(Regression::kCounts, setting);
    if (name == "choice") return new LogisticFamily(Regression::kChoices, setting);
    throw std::invalid_argument(name);
}

}  // namespace skihmm
