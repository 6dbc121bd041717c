// What is shown is in the address, so that it can be sent: #view=differs&verdict=missed&cell=suite.toml::P1[lab/a]

const READABLE = { '%2F': '/', '%3A': ':', '%40': '@', '%2C': ',' };
const encoded = (text) => encodeURIComponent(text).replace(/%2F|%3A|%40|%2C/g, (code) => READABLE[code]);

const cellNames = new Map();
for (const cells of slots.values()) {
  for (const cell of cells) {
    const prompt = prompts[columns.prompt[cell]];
    const repeat = cells.length > 1 || columns.repeat[cell] > 1 ? '-r' + columns.repeat[cell] : '';
    cellNames.set(cell, prompt.suite + '::' + prompt.id + '[' + targets[columns.target[cell]].label + ']' + repeat);
  }
}

function writeAddress() {
  const words = Object.keys(DEFAULTS).filter((name) => choice[name] !== DEFAULTS[name]).map((name) => [name, choice[name]]);
  for (const code of choice.verdicts) words.push(['verdict', VERDICTS[code].word]);
  for (const target of choice.targets) words.push(['target', targets[target].label]);
  if (open.cell !== null) words.push(['cell', cellNames.get(open.cell)]);
  const text = words.map(([name, value]) => name + '=' + encoded(value)).join('&');
  // A link to a section stays, as long as nothing is chosen.
  if (text || location.hash.includes('=')) history.replaceState(null, '', '#' + text);
}

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  if (!location.hash.includes('=')) {
    if (!matrix.items.length) choose({});
    return;
  }
  const all = (name, list) => new Set(words.getAll(name).map((word) => list.indexOf(word)).filter((number) => number >= 0));
  const wanted = { verdicts: all('verdict', VERDICTS.map(({ word }) => word)), targets: all('target', targets.map(({ label }) => label)) };
  for (const name of Object.keys(DEFAULTS)) if (words.has(name)) wanted[name] = words.get(name);
  const cell = [...cellNames].find(([, name]) => name === words.get('cell'));
  choose(wanted);
  byId('cells').scrollIntoView({ behavior: 'instant' });
  if (cell === undefined) return;
  const [prompt, target] = [columns.prompt[cell[0]], columns.target[cell[0]]];
  if (placeOf(prompt) >= 0 && matrix.shown.includes(target)) activate(prompt, target, { focus: false });
  showCell(cell[0], { focus: true });
}
