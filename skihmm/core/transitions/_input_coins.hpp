// Coins of states that depend on numbers: logistic regressions of staying on inputs of the step.
//
// Step t, after state k, is a stay with probability sigma(psi), psi = b_k^T x_t, where x_t are the
// standardised inputs of the entered step, and a one.  b_k ~ N(m, V), V diagonal, is integrated out
// by means of one Polya-gamma weight omega_t of every step (_polya_gamma.hpp): with s_t = 1 of a
// stay and 0 of a leave, kappa_t = s_t - 1/2,
//
//     C = (V^-1 + sum omega x x^T)^-1,  mean = C (V^-1 m + sum kappa x)
//
// over the steps after state k.  With mu = x^T mean, v = x^T C x and g = 1/(1 + omega v) the next
// step is entered by s with the factor
//
//     sqrt(g)/2 exp(-omega g/2 (mu - kappa_s/omega)^2),
//
// which is the predictive probability of (s, omega) over a number that is the same for all states
// and for both s.  So the factors of s = 0 and 1 sum to at most one: kernels rely on that when they
// stop early or bound terms that they have not evaluated.
//
// Weights belong to steps, not to states: any label and any s may have them.  They are kept during
// a sweep and drawn between sweeps, with all integrated variables.  A posterior draw has no
// weights; its factors are the probabilities, integrated over psi ~ N(mu, v).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "_cholesky.hpp"
#include "_containers.hpp"
#include "_hyperparameters.hpp"
#include "_logistic_evidence.hpp"
#include "_math.hpp"
#include "_polya_gamma.hpp"
#include "_random.hpp"
#include "_slots.hpp"

namespace skihmm {

// mu and v of n states; means and rows of C are side by side by state, and products of inputs have
// off-diagonal entries twice.
SKIHMM_CLONES static void predict_coins(int32_t n, int32_t width, int32_t n_products,
                                        int64_t stride, const double *x, const double *products,
                                        const double *numbers, double *__restrict mu,
                                        double *__restrict v) {
    for (int32_t k = 0; k < n; ++k) mu[k] = v[k] = 0.0;
    for (int32_t a = 0; a < width; ++a, numbers += stride)
        for (int32_t k = 0; k < n; ++k) mu[k] += x[a] * numbers[k];
    for (int32_t a = 0; a < n_products; ++a, numbers += stride)
        for (int32_t k = 0; k < n; ++k) v[k] += products[a] * numbers[k];
}
// (For one state the library's exponential takes half the time.)
template <class Exponential>
SKIHMM_INLINE void weigh_coin(double mu, double v, double omega, Exponential exponential,
                              double *stay, double *leave) {
    const double g = 1.0 / (1.0 + omega * v), half = 0.5 / omega, by = -0.5 * omega * g;
    const double root = 0.5 * std::sqrt(g);  // planted: bound of a coin
    *stay = root * exponential(std::max(by * (mu - half) * (mu - half), -650.0));
    // planted: factors of a coin
    *leave = root * exponential(std::max(by * (mu + half) * (mu + half), -650.0));
}
// Factors of n states, or steps, with mu in stays and v in leaves before.
SKIHMM_CLONES static void weigh_coins(int32_t n, const double *__restrict omega,
                                      double *__restrict stays, double *__restrict leaves) {
    for (int32_t k = 0; k < n; ++k)
        weigh_coin(stays[k], leaves[k], omega[k], [](double x) { return exp_of(x); }, &stays[k],
                   &leaves[k]);
}

class InputCoins {
  public:
    // Variables drawn between sweeps: mean and precision of intercepts, and the standard deviations
    // of coefficients of inputs, tau l_i.
    double mean = 0.0, precision = 1.0, tau = 1.0;
    std::vector<double> l;

    bool exist() const { return n_inputs_ > 0; }
    int32_t n_inputs() const { return n_inputs_; }
    int32_t width() const { return n_inputs_ + 1; }
    // Mean and C of a state.
    int32_t n_numbers() const { return width() + n_products(); }
    const std::vector<double> &weights() const { return omega_; }

    int64_t n_steps() const { return n_steps_; }
    size_t n_bytes() const {
        return 8 * (rows_.size() + omega_.size() + numbers_.size()) + 4 * owners_.size();
    }

    // Before steps and labels.  theta: prior mean of the intercepts' mean.
    void set_inputs(int32_t n_inputs, double theta) {
        n_inputs_ = n_inputs;
        x_.resize(width());
        direction_.resize(width());
        products_.resize(n_products());
        mean = theta_ = theta;
        precision = kShape / kRate;
        tau = kTau;
        l.assign(n_inputs, 1.0);
    }
    std::vector<double> prior() const {
        std::vector<double> values{mean, precision, tau};
        for (const double scale : l) values.push_back(tau * scale);
        return values;
    }
    // Set mean, precision, tau, and the standard deviations of coefficients, as hyperparameters.
    void set_prior(const double *values) {
        mean = values[0];
        precision = values[1];
        tau = values[2];
        for (int32_t i = 0; i < n_inputs_; ++i) l[i] = values[3 + i] / tau;
    }
    // Set the inputs by step, one after the other.
    void set_rows(std::vector<double> rows) {
        rows_ = std::move(rows);
        n_steps_ = static_cast<int64_t>(rows_.size()) / n_inputs_;
        read_ = kNone;
        forget_looks();
    }
    // Chains have weights.
    void set_steps(int64_t n_steps) {
        omega_.assign(n_steps, 0.25);
        owners_.assign(n_steps, kNoOwner);
    }
    void resize(int32_t n_slots) {
        if (n_slots <= n_slots_) return;
        const int64_t stride = (n_slots + 7) / 8 * 8;
        WideVector<double> wider(stride * n_numbers(), 0.0);
        for (int32_t i = 0; i < n_numbers(); ++i)
            std::copy_n(numbers_.data() + i * stride_, n_slots_, wider.data() + i * stride);
        numbers_.swap(wider);
        stride_ = stride;
        n_rows_.resize(n_slots, 0);
        is_saved_.resize(n_slots, 0);
        for (int32_t k = n_slots_; k < n_slots; ++k) reset(k);
        n_slots_ = n_slots;
    }
    void clear() {
        for (int32_t k = 0; k < n_slots_; ++k) reset(k);
        std::fill(owners_.begin(), owners_.end(), kNoOwner);
        forget_looks();
        commit();
    }

    // ---- factors of the ways to enter step t after state k

    void look(int64_t t, int32_t k, double *stay, double *leave) const {
        Look &look = looks_[0];
        if (!look.is_at(t, k)) {
            aim(t, k);
            weigh(t, aim_.mu, aim_.v, &look.stay, &look.leave);
        }
        *stay = look.stay;
        *leave = look.leave;
    }
    // Factors of the first n slots.  Most slots have no steps, and the factors of a new state.
    void fill(int64_t t, int32_t n, double *stays, double *leaves) const {
        read(t);
        if (used_.empty()) list_used();
        // Whole vectors, as the remainder would take longer.
        const int32_t n_used = static_cast<int32_t>(used_.size()), n_lanes = (n_used + 7) / 8 * 8;
        mu_.resize(stride_);
        v_.resize(stride_);
        predict_coins((used_.back() + 8) / 8 * 8, width(), n_products(), stride_, x_.data(),
                      products_.data(), numbers_.data(), mu_.data(), v_.data());
        for (int32_t i = 0; i < n_used; ++i) {
            mu_[i] = mu_[used_[i]];
            v_[i] = v_[used_[i]];
        }
        weights_.assign(n_lanes, has_weight(t) ? omega_[t] : 1.0);
        if (has_weight(t)) weigh_coins(n_lanes, weights_.data(), mu_.data(), v_.data());
        else for (int32_t i = 0; i < n_used; ++i) weigh(t, mu_[i], v_[i], &mu_[i], &v_[i]);
        std::fill_n(stays, n, mu_[0]);
        std::fill_n(leaves, n, v_[0]);
        for (int32_t i = 1; i < n_used; ++i) {
            stays[used_[i]] = mu_[i];
            leaves[used_[i]] = v_[i];
        }
    }
    // Factors of step t + 1, when step t has been entered so after k too.
    void look_after(int64_t t, int32_t k, bool stayed, double *stay, double *leave) const {
        Look &look = looks_[1 + stayed];
        if (!look.is_at(t, k)) {
            aim(t, k);
            double mu, v, along = 0.0;
            read(t + 1);
            predict(&numbers_[k], stride_, &mu, &v);
            const double omega = omega_[t], g = 1.0 / (1.0 + omega * aim_.v);
            for (int32_t a = 0; a < width(); ++a) along += direction_[a] * x_[a];
            const double by = ((stayed ? 0.5 : -0.5) - omega * aim_.mu) * g;
            mu += along * by;  // planted: row of a follower
            weigh(t + 1, mu, v - omega * g * along * along, &look.stay, &look.leave);
        }
        *stay = look.stay;
        *leave = look.leave;
    }
    // Factors of the steps t, t + by, ..., each after stays of k in the earlier ones.
    void fill_along(int64_t t, int64_t by, int32_t k, double *stays,
                    std::vector<double> *leaves) const {
        copy(k);
        weights_.resize(leaves->size());
        for (size_t i = 0; i < weights_.size(); ++i, t += by) {
            aim(t, one_.data(), 1);
            stays[i] = aim_.mu;
            (*leaves)[i] = aim_.v;
            weights_[i] = omega_[t];
            turn(omega_[t], true, 1.0, one_.data(), 1);
        }
        weigh_coins(static_cast<int32_t>(weights_.size()), weights_.data(), stays, leaves->data());
    }
    // Stay and leave factors of a state with this mean and covariance.
    void look(int64_t t, const double *numbers, double *stay, double *leave) const {
        aim(t, numbers, 1);
        weigh(t, aim_.mu, aim_.v, stay, leave);
    }

    // ---- changes

    void add(int64_t t, int32_t k, bool stayed) {
        save(k, t);
        aim(t, k);
        turn(omega_[t], stayed, 1.0, &numbers_[k], stride_);
        if (n_rows_[k]++ == 0) used_.clear();
        owners_[t] = 2 * k + stayed;
    }
    void remove(int64_t t, int32_t k, bool stayed) {
        save(k, t);
        owners_[t] = kNoOwner;
        if (--n_rows_[k] == 0) return reset(k);
        aim(t, k);
        if (!turn(-omega_[t], stayed, -1.0, &numbers_[k], stride_)) return recount(k);
        // Cache this step's factors; kernels ask for them next.
        looks_[0].is_at(t, k);
        weigh(t, aim_.mu, aim_.v, &looks_[0].stay, &looks_[0].leave);
    }
    void commit() {
        if (changes_.empty()) return;
        for (const int32_t k : saved_) is_saved_[k] = 0;
        saved_.clear();
        saved_numbers_.clear();
        changes_.clear();
    }
    void rollback() {
        const double *numbers = saved_numbers_.data();
        for (const int32_t k : saved_) {
            for (int32_t i = 0; i < n_numbers(); ++i)
                numbers_[i * stride_ + k] = numbers[i];  // planted: rollback of coins
            n_rows_[k] = static_cast<int32_t>(numbers[n_numbers()]);
            used_.clear();
            numbers += n_numbers() + 1;
        }
        for (size_t i = changes_.size(); i-- > 0;) owners_[changes_[i].t] = changes_[i].owner;
        forget_looks();
        commit();
    }
    // Every step's state before it and way, or that there is none: rebuild everything.
    template <class Owner> void recount(Owner owner_of) {
        for (int64_t t = 0; t < static_cast<int64_t>(owners_.size()); ++t) {
            const std::pair<int32_t, bool> owner = owner_of(t);
            owners_[t] = owner.first < 0 ? kNoOwner : 2 * owner.first + owner.second;
        }
        rebuild();
    }

    // ---- records

    // By the states' slots: mean and C.
    std::vector<double> numbers(const std::vector<int32_t> &slots) const {
        std::vector<double> out;
        for (const int32_t k : slots) {
            copy(k);
            out.insert(out.end(), one_.begin(), one_.end());
        }
        return out;
    }
    // The probabilities that step t stays and leaves after k.
    void integrate(int64_t t, int32_t k, double *stay, double *leave) const {
        aim(t, k);
        integrate(aim_.mu, aim_.v, stay, leave);
    }
    // For a posterior draw: by slot the mean probability to leave, over the steps after a state,
    // zero without steps; returns the log of the probability of the ways in which all steps are
    // entered.
    double integrate_steps(std::vector<double> *mean_leaves) const {
        mean_leaves->assign(n_slots_, 0.0);
        double lp = 0.0, stay, leave;
        for (size_t t = 0; t < owners_.size(); ++t) {
            if (owners_[t] == kNoOwner) continue;
            const int32_t k = owners_[t] / 2;
            integrate(t, k, &stay, &leave);
            (*mean_leaves)[k] += leave / n_rows_[k];
            lp += std::log(std::max(owners_[t] % 2 ? stay : leave, 1e-300));
        }
        return lp;
    }
    // The result of integrate_steps in a posterior draw, whose steps are not kept.
    double log_ways() const { return log_ways_; }
    // State k has the slot kFirst + k.  Without weights, `numbers` suffice.
    void load(const std::vector<double> &numbers, const std::vector<double> &weights,
              double log_ways) {
        clear();
        log_ways_ = log_ways;
        for (size_t at = 0; at < numbers.size(); ++at)
            numbers_[at % n_numbers() * stride_ + kFirst + at / n_numbers()] = numbers[at];
        if (!weights.empty()) omega_ = weights;
    }
    // Whether a recount from the steps gives the same, but for rounding.
    bool is_recounted() const {
        InputCoins other = *this;
        other.rebuild();
        for (size_t i = 0; i < numbers_.size(); ++i)
            if (!(std::fabs(numbers_[i] - other.numbers_[i])
                  <= 1e-6 * (1.0 + std::fabs(numbers_[i]))))
                return false;
        return n_rows_ == other.n_rows_;
    }

    // ---- all steps

    // log of the probability of all ways, given the prior.  Weights are left out: they would move
    // it by tens of nats, upwards with the information on coefficients.
    double log_joint() const {
        std::vector<std::vector<int64_t>> steps(n_slots_);
        for (size_t t = 0; t < owners_.size(); ++t)
            if (owners_[t] != kNoOwner) steps[owners_[t] / 2].push_back(t);
        std::vector<double> means(width(), 0.0), precisions(width());
        means[n_inputs_] = mean;
        for (int32_t a = 0; a < width(); ++a) precisions[a] = 1.0 / variance(a);
        double lp = 0.0;
        for (int32_t k = kFirst; k < n_slots_; ++k) {
            if (steps[k].empty()) continue;
            copy(k);
            lp += log_logistic_evidence(
                width(), means.data(), precisions.data(), {one_.begin(), one_.begin() + width()},
                [&](auto visit) {
                    for (const int64_t t : steps[k]) {
                        read(t);
                        visit(owners_[t] % 2 ? 0.5 : -0.5, 1.0, 0.0, 0.0, x_.data());
                    }
                });
        }
        return lp;
    }
    // The weights of a start, at which no coefficients are known.
    void draw_prior_weights(bitgen_t *g) {
        for (double &omega : omega_) omega = PolyaGammaOfOne::draw(g, mean);
    }
    // Between sweeps: the coefficients of states with steps, the prior given these, the weights
    // given them; then they are forgotten.
    void draw(bitgen_t *g) {
        std::vector<double> b(static_cast<size_t>(n_slots_) * width());
        std::vector<int32_t> used;
        for (int32_t k = kFirst; k < n_slots_; ++k) {
            if (n_rows_[k] == 0) continue;
            used.push_back(k);
            draw_coefficients(k, &b[static_cast<size_t>(k) * width()], g);
        }
        draw_scales(b, used, g);
        draw_intercepts(b, used, g);
        for (size_t t = 0; t < owners_.size(); ++t) {
            if (owners_[t] == kNoOwner) continue;
            const double psi = predictor(t, &b[static_cast<size_t>(owners_[t] / 2) * width()]);
            omega_[t] = PolyaGammaOfOne::draw(g, psi);  // planted: weight of a step
        }
        rebuild();
    }
    // Draw the weight of a step that has been entered so, given a state's numbers; add the row.
    void add_drawn(int64_t t, bool stayed, double *numbers, bitgen_t *g) const {
        aim(t, numbers, 1);
        const double psi = LogisticIntegral(stayed ? 0.5 : -0.5, 1.0, aim_.mu, aim_.v).draw(g);
        turn(PolyaGammaOfOne::draw(g, psi), stayed, 1.0, numbers, 1);
    }

  private:
    static constexpr int32_t kNoOwner = -1;
    static constexpr int64_t kNone = -2;
    // The last answer, until something changes.
    struct Look {
        int64_t t = kNone;
        int32_t k = 0;
        double stay = 0.0, leave = 0.0;

        // Whether the look is at this step and slot; from now on it is.
        bool is_at(int64_t at, int32_t slot) {
            if (t == at && k == slot) return true;
            t = at;
            k = slot;
            return false;
        }
    };
    // precision ~ Gamma(3/2, 1/2), tau ~ C+(0, 1/2), l_i ~ C+(0, 1).
    static constexpr double kShape = 1.5, kRate = 0.5, kTau = 0.5;
    static constexpr double kLeastVariance = 1e-8, kMostVariance = 1e8;

    int32_t n_products() const { return width() * (width() + 1) / 2; }
    bool has_weight(int64_t t) const { return t >= 0 && t < static_cast<int64_t>(omega_.size()); }
    double variance(int32_t a) const {
        return a == n_inputs_ ? 1.0 / precision : tau * tau * l[a] * l[a];
    }
    // Read x_t and its products; a step without inputs has the mean inputs.
    SKIHMM_INLINE void read(int64_t t) const {
        if (read_ == t) return;
        read_ = t;
        const bool is_there = t >= 0 && t < n_steps_;
        // planted: inputs of a step
        const double *row = rows_.data() + (is_there ? t * n_inputs_ : 0);
        for (int32_t i = 0; i < n_inputs_; ++i) x_[i] = is_there ? row[i] : 0.0;
        x_[n_inputs_] = 1.0;
        for (int32_t a = 0, at = 0; a < width(); ++a)
            for (int32_t b = 0; b <= a; ++b) products_[at++] = (a == b ? 1.0 : 2.0) * x_[a] * x_[b];
    }
    SKIHMM_INLINE void predict(const double *numbers, int64_t stride, double *mu,
                               double *v) const {
        *mu = *v = 0.0;
        for (int32_t a = 0; a < width(); ++a, numbers += stride) *mu += x_[a] * *numbers;
        for (int32_t a = 0; a < n_products(); ++a, numbers += stride) *v += products_[a] * *numbers;
    }
    SKIHMM_INLINE void weigh(int64_t t, double mu, double v, double *stay, double *leave) const {
        if (SKIHMM_LIKELY(has_weight(t)))
            return weigh_coin(mu, v, omega_[t], [](double x) { return std::exp(x); }, stay,
                              leave);
        integrate(mu, v, stay, leave);
    }
    static void integrate(double mu, double v, double *stay, double *leave) {
        // The rarer way first, which would otherwise cancel.
        double *rare = mu > 0.0 ? leave : stay, *other = mu > 0.0 ? stay : leave;
        const double deviation = std::sqrt(v);
        *rare = std::exp(deviation <= kMostBinaryDeviation
                             ? log_binary_integral(-std::fabs(mu), deviation)
                             : LogisticIntegral(0.5, 1.0, -std::fabs(mu), v).log());
        *other = 1.0 - *rare;
    }
    // mu, v and C x of step t.
    void aim(int64_t t, const double *numbers, int64_t stride) const {
        read(t);
        aim_ = Aim{kNone, 0, 0.0, 0.0};
        for (int32_t a = 0; a < width(); ++a, numbers += stride) {
            aim_.mu += x_[a] * *numbers;
            direction_[a] = 0.0;
        }
        for (int32_t a = 0; a < width(); ++a) {
            for (int32_t b = 0; b < a; ++b, numbers += stride) {
                direction_[a] += *numbers * x_[b];
                direction_[b] += *numbers * x_[a];
            }
            direction_[a] += *numbers * x_[a];
            numbers += stride;
        }
        for (int32_t a = 0; a < width(); ++a) aim_.v += direction_[a] * x_[a];
    }
    void aim(int64_t t, int32_t k) const {
        if (aim_.t == t && aim_.k == k) return;
        aim(t, &numbers_[k], stride_);
        aim_.t = t;
        aim_.k = k;
    }
    // Add the row that has been aimed at (sign 1) or remove it (-1), with its mu and v as they are
    // afterwards: false, and nothing done, if too few digits would be left.
    bool turn(double omega, bool stayed, double sign, double *numbers, int64_t stride) const {
        aim_.t = kNone;
        const double left = 1.0 + omega * aim_.v;
        // (False for NaN too.)
        if (!(left > kLeastLeft)) return false;
        const double g = 1.0 / left, kappa = stayed ? 0.5 : -0.5;
        const double by = (sign * kappa - omega * aim_.mu) * g;
        for (int32_t a = 0; a < width(); ++a, numbers += stride) *numbers += direction_[a] * by;
        for (int32_t a = 0; a < width(); ++a) {
            const double share = omega * g * direction_[a];
            for (int32_t b = 0; b <= a; ++b, numbers += stride) *numbers -= share * direction_[b];
        }
        aim_.mu += aim_.v * by;
        aim_.v *= g;
        return true;
    }
    void copy(int32_t k) const {
        one_.resize(n_numbers());
        for (int32_t i = 0; i < n_numbers(); ++i) one_[i] = numbers_[i * stride_ + k];
    }
    void reset(int32_t k) {
        for (int32_t i = 0; i < n_numbers(); ++i) numbers_[i * stride_ + k] = 0.0;
        numbers_[n_inputs_ * stride_ + k] = mean;
        for (int32_t a = 0; a < width(); ++a)
            numbers_[(width() + a * (a + 3) / 2) * stride_ + k] = variance(a);
        n_rows_[k] = 0;
        used_.clear();
    }
    // The new state and states with steps; all states of a posterior draw.
    void list_used() const {
        used_.assign(1, kNew);
        for (int32_t k = kFirst; k < n_slots_; ++k)
            if (n_rows_[k] > 0 || omega_.empty()) used_.push_back(k);
    }
    void forget_looks() const {
        for (Look &look : looks_) look.t = kNone;
        aim_.t = kNone;
    }
    // Save the numbers of state k before its first change in a move, for a rejection.
    void save(int32_t k, int64_t t) {
        for (Look &look : looks_) look.t = kNone;
        changes_.push_back({t, owners_[t]});
        if (is_saved_[k]) return;
        is_saved_[k] = 1;
        saved_.push_back(k);
        for (int32_t i = 0; i < n_numbers(); ++i)
            saved_numbers_.push_back(numbers_[i * stride_ + k]);
        saved_numbers_.push_back(n_rows_[k]);
    }
    void add_to_sums(int64_t t, double *sums) const {
        read(t);
        const double kappa = owners_[t] % 2 ? 0.5 : -0.5;
        for (int32_t a = 0; a < width(); ++a) *sums++ += kappa * x_[a];
        for (int32_t a = 0; a < width(); ++a)
            for (int32_t b = 0; b <= a; ++b) *sums++ += omega_[t] * x_[a] * x_[b];
    }
    void recount(int32_t k) {
        std::vector<double> sums(n_numbers(), 0.0);
        for (size_t t = 0; t < owners_.size(); ++t)
            if (owners_[t] != kNoOwner && owners_[t] / 2 == k) add_to_sums(t, sums.data());
        solve(k, sums.data());
    }
    void rebuild() {
        std::vector<double> sums(static_cast<size_t>(n_slots_) * n_numbers(), 0.0);
        for (int32_t k = 0; k < n_slots_; ++k) reset(k);
        forget_looks();
        for (size_t t = 0; t < owners_.size(); ++t) {
            if (owners_[t] == kNoOwner) continue;
            const int32_t k = owners_[t] / 2;
            add_to_sums(t, &sums[static_cast<size_t>(k) * n_numbers()]);
            ++n_rows_[k];
        }
        for (int32_t k = kFirst; k < n_slots_; ++k)
            if (n_rows_[k] > 0) solve(k, &sums[static_cast<size_t>(k) * n_numbers()]);
    }
    // mean and C from sum kappa x and sum omega x x^T.
    void solve(int32_t k, double *sums) {
        double *factor = sums + width();
        for (int32_t a = 0; a < width(); ++a) factor[a * (a + 3) / 2] += 1.0 / variance(a);
        sums[n_inputs_] += precision * mean;
        factorise(width(), factor);
        std::vector<double> column(width());
        for (int32_t a = 0; a < width(); ++a) numbers_[a * stride_ + k] = 0.0;
        for (int32_t b = 0; b < width(); ++b) {
            std::fill(column.begin(), column.end(), 0.0);
            column[b] = 1.0;
            solve_lower(width(), factor, column.data());
            solve_upper(width(), factor, column.data());
            for (int32_t a = 0; a < width(); ++a) numbers_[a * stride_ + k] += column[a] * sums[b];
            for (int32_t a = b; a < width(); ++a)
                numbers_[(width() + a * (a + 1) / 2 + b) * stride_ + k] = column[a];
        }
    }
    double predictor(int64_t t, const double *b) const {
        read(t);
        double psi = 0.0;
        for (int32_t a = 0; a < width(); ++a) psi += b[a] * x_[a];
        return psi;
    }
    void draw_coefficients(int32_t k, double *b, bitgen_t *g) const {
        copy(k);
        std::vector<double> factor(one_.begin() + width(), one_.end()), z(width());
        factorise(width(), factor.data());
        for (double &value : z) value = random_standard_normal(g);
        for (int32_t a = 0; a < width(); ++a) {
            b[a] = one_[a];
            for (int32_t c = 0; c <= a; ++c) b[a] += factor[a * (a + 1) / 2 + c] * z[c];
        }
    }
    // Half-Cauchy distributions as inverse gamma mixtures with an auxiliary number, which is drawn
    // anew before every use.
    void draw_scales(const std::vector<double> &b, const std::vector<int32_t> &used,
                     bitgen_t *g) {
        const double n = static_cast<double>(used.size());
        std::vector<double> squares(n_inputs_, 0.0);
        for (const int32_t k : used)
            for (int32_t i = 0; i < n_inputs_; ++i) {
                const double value = b[static_cast<size_t>(k) * width() + i];
                squares[i] += value * value;  // planted: squares of an input
            }
        double least = 0.0, most = INFINITY, sum = 0.0;         // of 1/tau^2
        for (int32_t i = 0; i < n_inputs_; ++i) {
            const double inverse = 1.0 / (l[i] * l[i]), tau2 = tau * tau;
            const double rate = random_standard_exponential(g) / (1.0 + inverse);
            const double drawn = draw_bounded_gamma(
                g, inverse, 0.5 + 0.5 * n, rate + 0.5 * squares[i] / tau2, tau2 / kMostVariance,
                tau2 / kLeastVariance);
            l[i] = 1.0 / std::sqrt(drawn);
            sum += squares[i] * drawn;
            least = std::max(least, 1.0 / (kMostVariance * drawn));
            most = std::min(most, 1.0 / (kLeastVariance * drawn));
        }
        const double inverse = 1.0 / (tau * tau);
        const double rate = random_standard_exponential(g) / (1.0 / (kTau * kTau) + inverse);
        tau = 1.0 / std::sqrt(draw_bounded_gamma(g, inverse, 0.5 + 0.5 * n * n_inputs_,
                                                 rate + 0.5 * sum, least, most));
    }
    void draw_intercepts(const std::vector<double> &b, const std::vector<int32_t> &used,
                         bitgen_t *g) {
        const double n = static_cast<double>(used.size());
        double squares = 0.0, sum = 0.0;
        for (const int32_t k : used) {
            // planted: row of an intercept
            const double value = b[static_cast<size_t>(k) * width() + n_inputs_];
            squares += (value - mean) * (value - mean);
            sum += value;
        }
        precision = random_standard_gamma(g, kShape + 0.5 * n) / (kRate + 0.5 * squares);
        const double all = 1.0 + n * precision;
        mean = (theta_ + precision * sum) / all + random_standard_normal(g) / std::sqrt(all);
    }

    struct Change {
        int64_t t;
        int32_t owner;
    };

    int32_t n_inputs_ = 0, n_slots_ = 0;
    int64_t n_steps_ = 0, stride_ = 0;
    double theta_ = 0.0, log_ways_ = 0.0;
    std::vector<double> rows_, omega_;          // by step
    std::vector<int32_t> owners_;               // by step: twice its state, and whether it stays
    WideVector<double> numbers_;                // by number, then by slot
    std::vector<int32_t> n_rows_;               // by slot
    // Saved numbers of this move.
    std::vector<int32_t> saved_;
    std::vector<uint8_t> is_saved_;             // by slot
    std::vector<double> saved_numbers_;
    std::vector<Change> changes_;
    // Scratch; changing it is safe in one thread only.
    mutable int64_t read_ = kNone;
    mutable std::vector<double> x_, products_, one_, direction_, mu_, v_, weights_;
    mutable std::vector<int32_t> used_;
    mutable Look looks_[3];
    // Mean and variance at the last slot or numbers aimed at, until these change.
    struct Aim {
        int64_t t;
        int32_t k;
        double mu, v;
    };
    mutable Aim aim_{kNone, 0, 0.0, 0.0};
};

}  // namespace skihmm
