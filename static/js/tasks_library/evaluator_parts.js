// An evaluator as a list of checks, {func, result, expected, options} each, and the other way round.
const KEYS = ["result", "expected", "options"];
const listOf = (value) => (value === undefined || value === null ? [] : Array.isArray(value) ? value : [value]);

export function parted(evaluator) {
  return listOf(evaluator.func).map((func, index) => ({ func, ...Object.fromEntries(KEYS.map((key) => [key, listOf(evaluator[key])[index] ?? {}])) }));
}

// One check stands for itself, several are columns, as OSWorld writes them.
export function joined(parts) {
  const column = (key) => parts.map((part) => part[key] ?? {});
  const columns = { func: parts.map((part) => part.func), ...Object.fromEntries(KEYS.map((key) => [key, column(key)])) };
  if (parts.length !== 1) return columns;
  return Object.fromEntries(Object.entries(columns).map(([key, [only]]) => [key, only]));
}
