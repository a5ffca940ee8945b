// The list of waiting entries beside the inbox: its rows, and their marks.
import { insertHtml } from "../lib/server_html.js";

const MARKS = { accepted: "✓", gold: "★", rejected: "✕" };

export class InboxQueue {
  constructor(list) {
    this.list = list;
  }

  ids() {
    return [...this.list.querySelectorAll("[data-entry]")].map((row) => Number(row.dataset.entry));
  }

  // Near-identical entries that this one stands for.
  numAlike(id) {
    return Number(this.list.querySelector(`[data-entry="${id}"]`)?.dataset.alike ?? 0);
  }

  append(rows) {
    insertHtml(this.list, rows);
  }

  insertBeforeSelected(row) {
    insertHtml(this.list, row, this.list.querySelector('[aria-selected="true"]'));
  }

  mark({ order, position, known, skipped }) {
    for (const row of this.list.children) {
      const id = Number(row.dataset.entry);
      const isCurrent = id === order[position];
      if (isCurrent !== (row.getAttribute("aria-selected") === "true")) {
        row.setAttribute("aria-selected", String(isCurrent));
        if (isCurrent) this.keepInSight(row);
      }
      const verdict = known.get(id)?.verdict ?? row.dataset.verdict;
      row.dataset.verdict = verdict;
      row.classList.toggle("is-skipped", skipped.has(id) && verdict === "inbox");
      const mark = row.querySelector(".queue-mark");
      const text = MARKS[verdict] ?? "";
      if (mark.textContent !== text) mark.textContent = text;
    }
  }

  // Scrolls the queue alone; scrollIntoView would move the whole page on a phone.
  keepInSight(row) {
    const { list } = this;
    const top = row.offsetTop - list.offsetTop;
    if (top < list.scrollTop) list.scrollTop = top - 4;
    else if (top + row.offsetHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + row.offsetHeight - list.clientHeight + 4;
  }
}
