// The rows of a trajectory's group below the viewer: the watched turn is marked, siblings are one key away.
export class GroupLane {
  // `currentPlace()` tells the watched turn as { key, position }.
  constructor(holder, currentPlace) {
    this.holder = holder;
    this.currentPlace = currentPlace;
    holder.addEventListener("html:shown", () => this.mark());
  }

  mark() {
    const { key, position } = this.currentPlace();
    for (const old of this.holder.querySelectorAll(".is-current")) old.classList.remove("is-current");
    const cells = this.holder.querySelectorAll(".lane-row.is-watched .lane-cell");
    cells[key === "end" ? cells.length - 1 : position]?.classList.add("is-current");
  }

  // The watched row in the middle, without moving the page.
  centre() {
    const rows = this.holder.querySelector(".lane-rows");
    const row = rows?.querySelector(".is-watched");
    if (row) rows.scrollTop = row.offsetTop - rows.offsetTop - (rows.clientHeight - row.offsetHeight) / 2;
  }

  // The URL of the sibling `delta` rows below, without its turn; undefined when there is none.
  urlOfSibling(delta) {
    const rows = [...this.holder.querySelectorAll("[data-sibling]")];
    const here = rows.findIndex((row) => row.classList.contains("is-watched"));
    return rows[here + delta]?.querySelector("[data-sibling-link]")?.getAttribute("href").split("#")[0];
  }
}
