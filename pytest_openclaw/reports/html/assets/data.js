// The run. Small columns are parsed at once; texts and details when they are first needed.

const page = JSON.parse(document.querySelector('script.page').textContent);
const { columns, prompts, targets } = page;
const N = columns.prompt.length;
const VERDICTS = [
  { word: 'passed', glyph: '✓' },
  { word: 'missed', glyph: '✗' },
  { word: 'not judged', glyph: '•' },
  { word: 'no words', glyph: '∅' },
  { word: 'fault', glyph: '!' },
  { word: 'unavailable', glyph: '–' },
];

function chunked(name) {
  const elements = [...document.querySelectorAll('script.' + name)];
  const firsts = elements.map((element) => Number(element.dataset.first));
  const parsed = new Map();
  return (number) => {
    let low = 0;
    let high = firsts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (firsts[middle] <= number) low = middle;
      else high = middle - 1;
    }
    if (!parsed.has(low)) {
      parsed.set(low, JSON.parse(elements[low].textContent));
      elements[low].remove(); // its source is not kept beside it
    }
    return parsed.get(low)[number - firsts[low]];
  };
}

const textOf = chunked('texts');
const detailOf = chunked('details');

// Cells by prompt and target, repeat by repeat.
const slots = new Map();
for (let cell = 0; cell < N; cell += 1) {
  const key = columns.prompt[cell] * targets.length + columns.target[cell];
  if (slots.has(key)) slots.get(key).push(cell);
  else slots.set(key, [cell]);
}
for (const cells of slots.values()) cells.sort((a, b) => columns.repeat[a] - columns.repeat[b]);
const slotOf = (prompt, target) => slots.get(prompt * targets.length + target) || [];
const NONE = [];

function time(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 999.5) return Math.round(ms) + ' ms';
  const seconds = ms / 1000;
  return (seconds < 99.95 ? seconds.toFixed(1) : seconds.toFixed(0)) + ' s';
}

const nameOf = (prompt) => (prompt.name && prompt.name !== prompt.id ? prompt.id + ' ' + prompt.name : prompt.id);
const suiteOf = (prompt) => prompt.suite.replace(/^.*\//, '');
const worded = (outcome) => (outcome ? outcome.replaceAll('_', ' ') : '');
