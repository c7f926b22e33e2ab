// Keyboard movement among links on a grid: one of them is in the tab order, arrow keys move to the others.
// Each link says where it is by data-row and data-column.

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

export class Roving {
  // `beyond(step)` is called when the keys lead past the first or last row; it may bring other rows and return true.
  constructor(container, beyond) {
    this.container = container;
    this.beyond = beyond ?? (() => false);
    container.addEventListener("keydown", (event) => this.move(event));
    container.addEventListener("focusin", (event) => {
      const link = event.target.closest("[data-row]");
      if (link) this.makeCurrent(link);
    });
    this.refresh();
  }

  links() {
    return [...this.container.querySelectorAll("[data-row]")].filter((link) => link.offsetParent !== null);
  }

  // To be called when links have come or gone.
  refresh() {
    const links = this.links();
    this.makeCurrent(links.find((link) => link.ariaCurrent) ?? links.find((link) => link.tabIndex === 0) ?? links[0]);
  }

  makeCurrent(link) {
    for (const other of this.container.querySelectorAll("[data-row]")) other.tabIndex = other === link ? 0 : -1;
  }

  focusFirst() {
    this.links()[0]?.focus();
  }

  focusLast() {
    this.links().at(-1)?.focus();
  }

  focusCurrent() {
    this.refresh();
    this.container.querySelector('[tabindex="0"]')?.focus();
  }

  move(event) {
    const link = event.target.closest("[data-row]");
    if (!link || event.ctrlKey || event.altKey || event.metaKey || event.shiftKey) return;
    const links = this.links();
    let next = null;
    if (event.key === "Home") next = links[0];
    else if (event.key === "End") next = links.at(-1);
    else if (event.key in STEPS) next = this.neighbour(link, links, ...STEPS[event.key]);
    else return;
    event.preventDefault();
    if (next) next.focus();
    else this.beyond(STEPS[event.key][0]);
  }

  // The nearest link in that direction in the same row or column.
  neighbour(link, links, down, right) {
    const [row, column] = [Number(link.dataset.row), Number(link.dataset.column)];
    let best = null;
    for (const other of links) {
      const [rows, columns] = [Number(other.dataset.row) - row, Number(other.dataset.column) - column];
      const distance = down ? rows * down : columns * right;
      const aside = down ? columns : rows;
      if (aside === 0 && distance > 0 && (best === null || distance < best.distance)) best = { other, distance };
    }
    return best?.other ?? null;
  }
}
