// Questions and recipes have the words of users, so they come first.  The other numbers are
// the defaults of Sphinx.
var Scorer = {
  score: (result) => {
    const [page, , , , score] = result;
    return score + (page === "faq" || page.startsWith("recipes/") ? 15 : 0);
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
