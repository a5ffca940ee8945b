// How well a setting fits what is searched: a pure function, so that it can be tried without a page.

const OFF = 10;

// 0 = its exact name, then names that begin with it, names that have all words, paths, and help; `null` = not at
// all. What is switched off comes after everything that is on.
export function fit({ label, path, words }, query, isOff) {
  const parts = query.split(/\s+/).filter(Boolean);
  if (!parts.every((part) => words.includes(part))) return null;
  const text = parts.join(" ");
  const own = path.split(".").at(-1).replaceAll("_", " ");
  let rank = 4;
  if (label === text || path === text || own === text) rank = 0;
  else if (label.startsWith(text)) rank = 1;
  else if (parts.every((part) => label.includes(part))) rank = 2;
  else if (parts.every((part) => path.includes(part))) rank = 3;
  return rank + (isOff ? OFF : 0);
}
