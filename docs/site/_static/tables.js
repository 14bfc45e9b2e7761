// On a phone, tables of words become lists (moelab.css): each cell carries the head of its column. Tables of numbers scroll.
// Tables with fifteen rows and more get a search, and sort by the column that is clicked. A head with data-filter gets a
// list of its column's values. The page's address may choose one: ?verdict=refuted. A table with data-rows shows that many
// rows at first.
document.addEventListener("DOMContentLoaded", () => {
  const address = new URLSearchParams(window.location.search);

  // Numbers of a column are in data-sort where the shown text does not sort.
  const valueOf = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent;
  const compared = (a, b) => {
    const [x, y] = [parseFloat(a), parseFloat(b)];
    return isNaN(x) || isNaN(y) ? a.localeCompare(b, undefined, { numeric: true }) : x - y;
  };

  // Paths break after a slash.
  for (const code of document.querySelectorAll(".bd-article td code .pre")) {
    const parts = code.textContent.split(/(?<=\/)(?=.)/);
    code.replaceChildren(...parts.flatMap((part, i) => (i ? [document.createElement("wbr"), part] : [part])));
  }

  for (const table of document.querySelectorAll(".bd-article table.table")) {
    const body = table.tBodies[0];
    if (body?.rows.length && table.tHead?.rows[0].cells.length > 2 && !table.className.match(/claims|points|runs|counts/)) {
      const cells = [...body.rows].flatMap((row) => [...row.cells]);
      const words = cells.filter((cell) => cell.textContent.trim().split(/\s+/).length > 5);
      if (words.length * 5 > cells.length) {
        table.classList.add("stacked");
        for (const cell of cells) {
          cell.dataset.head = table.tHead.rows[0].cells[cell.cellIndex].textContent;
          cell.classList.toggle("blank", !cell.textContent.trim());
        }
      }
    }
    if (!body || body.rows.length < 15 || !table.tHead || table.classList.contains("counts")) continue;
    // An empty first cell continues the row above: the row is found by its words, too.
    let above = "";
    let continues = false;
    const texts = new Map();
    for (const row of body.rows) {
      const first = row.cells[0].textContent.trim();
      continues ||= first === "";
      above = first || above;
      texts.set(row, `${above} ${row.textContent}`.toLowerCase());
    }
    const heads = [...table.tHead.rows[0].cells];
    const bar = document.createElement("div");
    bar.className = "table-bar";
    const filter = document.createElement("input");
    filter.type = "search";
    filter.placeholder = "Filter rows";
    filter.setAttribute("aria-label", "Filter the rows of the table");
    filter.className = "form-control";
    bar.append(filter);
    const choices = [];
    heads.forEach((head, column) => {
      if (!head.dataset.filter) return;
      const select = document.createElement("select");
      select.className = "form-select";
      select.setAttribute("aria-label", `Filter by ${head.textContent}`);
      const values = new Set([...body.rows].map((row) => row.cells[column].textContent));
      select.append(new Option(`${head.textContent}: all`, ""), ...[...values].sort().map((value) => new Option(value, value)));
      const chosen = address.get(head.dataset.filter);
      if (values.has(chosen)) select.value = chosen;
      choices.push([select, column]);
      bar.append(select);
    });
    const count = document.createElement("span");
    count.className = "table-count";
    const more = document.createElement("button");
    more.type = "button";
    more.className = "btn btn-outline-secondary btn-sm";
    more.textContent = "Show all rows";
    let most = Number(table.dataset.rows) || Infinity;

    const show = () => {
      const words = filter.value.toLowerCase().split(/\s+/);
      let found = 0;
      for (const row of body.rows) {
        const fits = words.every((word) => texts.get(row).includes(word)) &&
          choices.every(([select, column]) => !select.value || row.cells[column].textContent === select.value);
        if (fits) ++found;
        row.hidden = !fits || found > most;
      }
      count.textContent = `${found} of ${body.rows.length}`;
      more.hidden = found <= most;
    };
    filter.addEventListener("input", show);
    for (const [select] of choices) select.addEventListener("change", show);
    more.addEventListener("click", () => { most = Infinity; show(); });

    const frame = table.closest(".pst-scrollable-table-container") ?? table;
    frame.before(bar);
    if (choices.length) bar.append(count);
    frame.after(more);
    show();
    if (continues) continue;  // such rows keep their order
    heads.forEach((head, column) => {
      let up = false;
      head.classList.add("sortable");
      head.addEventListener("click", () => {
        up = !up;
        const rows = [...body.rows].sort((a, b) => compared(valueOf(a, column), valueOf(b, column)));
        body.append(...(up ? rows : rows.reverse()));
        show();
      });
    });
  }

  // A link to a point opens the list that holds it.
  const open = () => {
    const target = document.getElementById(decodeURIComponent(window.location.hash.slice(1)));
    if (target?.tagName === "DETAILS") target.open = true;
  };
  window.addEventListener("hashchange", open);
  open();
});
