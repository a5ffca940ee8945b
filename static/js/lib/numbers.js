// Numbers as training/contracts/number_text.py writes them: one rounding, thousands with commas, a real minus.

// Half is rounded away from zero on the digits that the number is written with.
export function fixed(value, digits = 2, { signed = false } = {}) {
  const rounded = Number(`${Math.round(Number(`${Math.abs(value)}e${digits}`))}e-${digits}`);
  const text = rounded.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  if (rounded === 0) return text;
  return (value < 0 ? "−" : signed ? "+" : "") + text;
}

export function counted(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en-US")} ${number === 1 ? one : many}`;
}
