// Orders what the search finds: pages whose title has all words come first, and pages that explain come before lists.
const searchedWords = (new URLSearchParams(window.location.search).get("q") ?? "").toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? [];

var Scorer = {
  score: ([page, title, anchor, description, score]) => {
    const found = searchedWords.filter((word) => title.toLowerCase().includes(word)).length;
    const explains = /^(tutorials|howto|explanation|papers)\//.test(page) || page === "reference/glossary";
    return score + (20 * found) / Math.max(1, searchedWords.length) + (explains ? 4 : 0);
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
