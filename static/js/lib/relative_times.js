// Keeps relative times fresh; the words are those of the `since` and `duration` template filters.
const REFRESH_MS = 5000;
const UNITS = [
  [60, 1, "s"],
  [3600, 60, "min"],
  [86400, 3600, "h"],
];

export function relative(seconds) {
  if (seconds < 0) return "now";
  if (seconds < 3) return "just now";
  for (const [limit, size, unit] of UNITS) {
    if (seconds < limit) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return `${Math.floor(seconds / 86400)} d ago`;
}

export function duration(seconds) {
  const whole = Math.max(0, Math.round(seconds));
  if (whole < 60) return `${whole} s`;
  if (whole < 3600) return whole % 60 ? `${Math.floor(whole / 60)} min ${whole % 60} s` : `${whole / 60} min`;
  return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
}

export function refreshTimes(root = document) {
  const now = Date.now();
  for (const element of root.querySelectorAll("time[data-since]")) {
    const text = relative(Math.floor((now - Date.parse(element.dateTime)) / 1000));
    if (element.textContent !== text) element.textContent = text;
    if (!element.title) element.title = `${new Date(element.dateTime).toISOString().slice(0, 19).replace("T", " ")} UTC`;
  }
  for (const element of root.querySelectorAll("time[data-elapsed]")) {
    element.textContent = duration((now - Date.parse(element.dateTime)) / 1000);
  }
}

setInterval(refreshTimes, REFRESH_MS);
