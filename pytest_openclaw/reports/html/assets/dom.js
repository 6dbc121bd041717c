// Elements are made here; a string given as a child becomes text.

function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === 'class') element.className = value;
    else if (name === 'on') for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else element.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined) continue;
    element.append(typeof child === 'string' ? plain(child) : child);
  }
  return element;
}

const byId = (id) => document.getElementById(id);

// A box that scrolls sideways can be reached by the keyboard, but is no stop where nothing is hidden.
const scrolling = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const hides = target.scrollWidth > target.clientWidth + 1 || target.scrollHeight > target.clientHeight + 1;
    if (hides) target.setAttribute('tabindex', '0');
    else target.removeAttribute('tabindex');
    if (target.hint) target.hint.hidden = target.scrollWidth <= target.clientWidth + 1;
  }
});

function scroller(name, ...children) {
  const box = make('div', { class: 'scroll', role: 'region', 'aria-label': name }, ...children);
  box.hint = make('p', { class: 'hint', hidden: true }, 'More columns: scroll sideways →');
  scrolling.observe(box);
  return make('div', null, box.hint, box);
}

function table(data) {
  const figures = (column) => (column >= data.n_words ? 'figure' : null);
  const head = data.head.map((text, n) => make('th', { scope: 'col', class: figures(n) }, text));
  const rows = data.rows.map((row) =>
    make('tr', null, row.map((text, n) => make(n ? 'td' : 'th', { scope: n ? null : 'row', class: figures(n) }, text))));
  data.fills.forEach((fills, n) => fills.forEach((share, column) => {
    if (!share) return;
    rows[n].children[column].classList.add(share > 0 ? 'good' : 'bad');
    rows[n].children[column].style.setProperty('--share', Math.abs(share).toFixed(3));
  }));
  return scroller(data.caption, make('table', null,
    make('caption', { class: 'unseen' }, data.caption), make('thead', null, make('tr', null, head)), make('tbody', null, rows)));
}
