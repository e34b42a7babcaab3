// The view Select, by the numbers on the page, and its core against the native program.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { bundled, medianFrame, normscope, open, source, temporaryDirectory, timeFrames, webFolder } from './harness.mjs';
import { serve } from './serve.mjs';

const markup = '<img src=x onerror=alert(1)>';

// The view opens with keys in space; an address that names only a part of a setting means those of the plane.
const plane = '#select?norm=none';
async function select(t, hash = plane, options = {}) {
  const page = await open(t, (await serve(t, webFolder)) + hash, options);
  await page.getByTestId('select-view').waitFor();
  return page;
}
const text = (page, id) => page.getByTestId(id).textContent();
const value = async (page, id) => Number(await page.getByTestId(id).getAttribute('data-value'));
const arcs = async (page, key) => page.getByTestId(`arc-${key}`).count();
const slide = (page, id, to) => page.getByTestId(id).evaluate((input, next) => {
  input.value = next;
  input.dispatchEvent(new Event('input', { bubbles: true }));
}, String(to));

// A .npy file of doubles.
function npy(shape, values) {
  const dictionary = `{'descr': '<f8', 'fortran_order': False, 'shape': (${shape.join(', ')},), }`;
  const header = dictionary.padEnd(128 - 10 - 1) + '\n';
  const bytes = Buffer.alloc(128 + 8 * values.length);
  bytes.write('\x93NUMPY\x01\x00', 'latin1');
  bytes.writeUInt16LE(header.length, 8);
  bytes.write(header, 10, 'latin1');
  values.forEach((number, i) => bytes.writeDoubleLE(number, 128 + 8 * i));
  return bytes;
}

// Numbers in [0, 1), the same on every run.
function generator(seed) {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

test('The sentence over the keys speaks of every key, also of one that is left undecided', async () => {
  const code = await bundled({
    configFile: false,
    build: { lib: { entry: path.join(source, 'web/src/views/select_words.ts'), formats: ['es'] } },
  });
  const { sentenceOf } = await import('data:text/javascript,' + encodeURIComponent(code));
  const key = (verdict, robust = true) => ({ verdict, robust });
  const said = (...keys) => sentenceOf({ keys }, ['a', 'b', 'c', 'd', 'e', 'f'], 0);
  assert.equal(said(key('selectable'), key('selectable')), 'All 2 keys can be selected: each is a vertex of the hull.');
  assert.equal(said(key('selectable'), key('undecided', false)), 'b is undecided: rational arithmetic would need more than it may take here.');
  assert.match(said(key('selectable', false), key('unselectable'), key('tied', false)),
    /^b is unselectable: .* c is tied: .* a is tied up to rounding: /);
  for (const verdict of ['selectable', 'tied', 'unselectable', 'undecided'])
    assert.doesNotMatch(said(key(verdict, false), key('undecided', false)), /All/);
  assert.match(said(...Array(6).fill(key('unselectable'))), /^a, b, c and 3 more are unselectable/);
});

test('The first example is a key that LayerNorm frees; in the plane the page says what projection leaves', async t => {
  const page = await select(t, '#select');
  assert.equal(await page.getByTestId('preset').inputValue(), 'hidden');
  assert.match(await text(page, 'fact'), /^Key 2 lies inside the hull/);
  assert.equal(await text(page, 'verdict-2'), 'unselectable');
  await page.getByTestId('projection').check();
  assert.equal(await text(page, 'verdict-2'), 'unselectable');
  await page.getByTestId('scaling').check();
  assert.equal(await text(page, 'count-selectable'), '5');
  assert.equal(await text(page, 'norm'), 'Both together are LayerNorm.');
  await page.getByTestId('projection').uncheck();
  assert.equal(await text(page, 'count-selectable'), '5');
  await page.getByTestId('preset').selectOption('neighbour');
  for (const half of ['projection', 'scaling']) await page.getByTestId(half).check();
  assert.match(await text(page, 'norm'), /LayerNorm\. In the plane the projection leaves a line, .* two points/);
  assert.match(await text(page, 'summary'), / tied/);
  assert.deepEqual(page.problems, []);
});

test('As the page opens no key and no query covers another, and words explain the marks, in space as in the plane', async t => {
  for (const [width, apart] of [[1280, 30], [390, 40]]) { // units of the figure; on a small screen its points are larger
    const page = await select(t, '#select', { width });
    const places = await page.locator('.handle').evaluateAll(handles => handles.map(handle => handle.getAttribute('transform').match(/-?[\d.]+/g).slice(0, 2).map(Number)));
    assert.equal(places.length, 6);
    places.forEach((one, i) => places.slice(0, i).forEach((other, j) =>
      assert.ok(Math.hypot(one[0] - other[0], one[1] - other[1]) >= apart, `points ${j + 1} and ${i + 1} at ${other} and ${one}`)));
    assert.equal(await text(page, 'caption'),
      'A dashed ring: unselectable. A thin ring: Key 2, which is chosen. Dashed lines lead to the keys of which Key 2 is a mixture. ' +
      'Drag the ground to turn the view, drag a point to move it in the plane of the screen.');
    await page.getByTestId('scaling').check();
    assert.match(await text(page, 'caption'), /^Numbered points are the keys before the norm, small ones after it.* A thin ring/);
    assert.doesNotMatch(await text(page, 'caption'), /[Dd]ashed/);
    await page.getByTestId('preset').selectOption('neighbour');
    assert.match(await text(page, 'caption'), /^A thin ring: Key 3, which is chosen\. The dotted line is a query that selects Key 3\.$/);
  }
});

test('Keys tied up to rounding are so in sentence, tiles, ring, labels and caption; a label stands where the norm put its keys', async t => {
  const page = await select(t);
  for (const half of ['projection', 'scaling']) await page.getByTestId(half).check();
  assert.match(await text(page, 'summary'), /^Key 1, Key 2, Key 3 and 2 more are tied up to rounding/);
  assert.equal(await text(page, 'count-tied-up-to-rounding'), '5');
  for (const kind of ['selectable', 'tied', 'unselectable']) assert.equal(await text(page, `count-${kind}`), '0', kind);
  assert.equal(await page.locator('.arc:not(.rounding)').count(), 0);
  for (const name of await page.locator('.arc-name').allTextContents()) assert.match(name, /≈/);
  const labels = await page.locator('.tie-name').evaluateAll(names => names.map(name => [name.textContent, name.getBoundingClientRect().toJSON()]));
  assert.deepEqual(labels.flatMap(([words]) => words.match(/^[\d, ]+/)[0].split(', ')).sort(), ['1', '2', '3', '4', '5']);
  labels.forEach(([words, one], i) => labels.slice(0, i).forEach(([, other]) =>
    assert.ok(one.right <= other.left || other.right <= one.left || one.bottom <= other.top + 3 || other.bottom <= one.top + 3, words)));
  const point = await page.locator('.normed').first().boundingBox(), label = labels.find(([words]) => /^1\b/.test(words))[1];
  assert.ok(Math.abs(point.y - label.y) < 60 && Math.abs(point.x + point.width / 2 - label.x - label.width / 2) < 10);
  assert.match(await text(page, 'caption'), /filled, or hollow if unselectable\. A dotted ring: tied\. A pale part/);
  assert.equal(await page.locator('.normed[fill="var(--ground)"]').count(), 0); // so hollow none is
});

test('Lengthening Key 3 makes Key 2 unselectable, and scaling restores it', async t => {
  const page = await select(t);
  assert.equal(await text(page, 'verdict-2'), 'selectable');
  assert.equal(await arcs(page, 2), 1);
  assert.ok((await value(page, 'margin-2')) > 0.1);
  await slide(page, 'magnitude', 3);
  assert.equal(await text(page, 'verdict-2'), 'unselectable');
  assert.equal(await arcs(page, 2), 0);
  assert.match(await text(page, 'certificate-2'), /^= .*Key 3/);
  assert.equal(await text(page, 'count-unselectable'), '1');
  assert.match(await text(page, 'summary'), /Key 2 is unselectable/);
  await page.getByTestId('scaling').check();
  assert.equal(await text(page, 'verdict-2'), 'selectable');
  assert.equal(await arcs(page, 2), 1);
  assert.equal(await text(page, 'count-unselectable'), '0');
  assert.match(await text(page, 'norm'), /RMSNorm/);
  assert.deepEqual(page.problems, []);
});

test('In space every step of a turn, and of a key that is dragged, is drawn anew; the median frame is told', async t => {
  const page = await select(t, '#select');
  await page.getByTestId('scaling').check(); // with the sphere of winners
  const drawn = () => page.getByTestId('figure').innerHTML();
  const grips = {
    'the view is turned': async () => {
      const box = await page.getByTestId('figure').boundingBox();
      return [box.x + 0.08 * box.width, box.y + 0.08 * box.height];
    },
    'a key is dragged': async () => {
      const box = await page.getByTestId('key-3').boundingBox();
      return [box.x + box.width / 2, box.y + box.height / 2];
    },
  };
  for (const [name, grip] of Object.entries(grips)) {
    const [x, y] = await grip();
    await timeFrames(page);
    await page.mouse.move(x, y);
    await page.mouse.down();
    let last = await drawn();
    for (let i = 1; i <= 40; ++i) {
      await page.mouse.move(x + 2 * i, y + i);
      await page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      const now = await drawn();
      assert.notEqual(now, last, `${name}: step ${i} was not drawn`);
      last = now;
    }
    await page.mouse.up();
    t.diagnostic(`median frame while ${name}: ${(await medianFrame(page)).toFixed(1)} ms`);
  }
  assert.deepEqual(page.problems, []);
});

test('In space a region of directions has the number of its key and a border, since colours repeat after seven keys', async t => {
  const keys = '1,0,0.2;0.1,0.1,0.1;0.3,-1,0.5;0,0.2,1.2;-1,-0.5,-0.3;0.7,0.7,-0.7;-0.2,-0.3,-1.3;-0.9,0.3,0.9;1.1,-0.8,-0.5;0.1,1.3,0.6';
  const page = await select(t, `#select?keys=${keys}&query=1,0.3,0.2`);
  assert.equal(await text(page, 'verdict-2'), 'unselectable');
  const seen = new Set();
  await page.getByTestId('figure').focus();
  for (let turn = 0; turn < 13; ++turn) {
    const numbers = await page.locator('.region-name').allTextContents();
    assert.ok(numbers.length >= 4 && new Set(numbers).size === numbers.length, String(numbers));
    numbers.forEach(number => seen.add(number));
    await page.keyboard.press('Shift+ArrowRight');
  }
  assert.ok(seen.has('9') && seen.has('10') && !seen.has('2'), [...seen].join());
  // A number stands in the colour of its key.
  const wrong = await page.evaluate(() => {
    const picture = document.querySelector('[data-testid=sphere]'), label = document.querySelector('.region-name');
    const key = document.querySelector(`[data-testid=key-${label.textContent}] circle[stroke-width="2.5"]`);
    const at = ['x', 'y'].map(name => label[name].baseVal[0].value - picture[name].baseVal.value);
    return new Promise(resolve => {
      const image = new Image();
      image.onload = () => {
        const canvas = document.createElement('canvas');
        canvas.width = canvas.height = 116;
        const context = canvas.getContext('2d');
        context.drawImage(image, 0, 0, 116, 116);
        const [r, g, b] = context.getImageData(at[0], at[1] - 4, 1, 1).data;
        const colour = getComputedStyle(key).stroke.match(/\d+/g).map(Number);
        resolve([r - colour[0], g - colour[1], b - colour[2]]);
      };
      image.src = picture.href.baseVal;
    });
  });
  assert.ok(wrong.every(difference => Math.abs(difference) < 4), String(wrong));
});

test('An arrow key turns the view, and with Shift as far as five', async t => {
  const page = await select(t, '#select');
  const places = () => page.locator('.handle.key').evaluateAll(keys => keys.map(key => key.getAttribute('transform')));
  const start = await places();
  await page.getByTestId('figure').focus();
  for (let i = 0; i < 5; ++i) await page.keyboard.press('ArrowRight');
  const five = await places();
  assert.notDeepEqual(five, start);
  await page.keyboard.press('Shift+ArrowLeft');
  assert.deepEqual(await places(), start);
});

test('In space, LayerNorm restores what the long key hid', async t => {
  const page = await select(t);
  await slide(page, 'magnitude', 3);
  await page.getByTestId('dimension-3').check({ force: true });
  assert.equal(await text(page, 'verdict-2'), 'unselectable');
  await page.getByTestId('projection').check();
  assert.equal(await text(page, 'verdict-2'), 'unselectable');
  await page.getByTestId('scaling').check();
  assert.equal(await text(page, 'count-selectable'), '5');
  assert.match(await text(page, 'norm'), /LayerNorm/);
});

test('Weights are a softmax: they sum to 1, and a high temperature levels them', async t => {
  const page = await select(t);
  const weights = () => Promise.all([1, 2, 3, 4, 5].map(key => value(page, `weight-${key}`)));
  const before = await weights();
  assert.ok(Math.abs(before.reduce((a, b) => a + b) - 1) < 1e-12);
  await slide(page, 'temperature', 5);
  const after = await weights();
  assert.ok(Math.max(...after) < Math.max(...before));
  assert.ok(Math.abs(after.reduce((a, b) => a + b) - 1) < 1e-12);
});

test('A key follows the pointer and the arrow keys, and the query too', async t => {
  const page = await select(t);
  // Key 5 to the middle of the figure, where the others surround it.
  const box = await page.getByTestId('figure').boundingBox();
  const key = await page.getByTestId('key-5').locator('circle').first().boundingBox();
  await page.mouse.move(key.x + key.width / 2, key.y + key.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width / 2 - 20, box.y + box.height / 2 + 10, { steps: 5 });
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2, { steps: 5 });
  await page.mouse.up();
  assert.equal(await text(page, 'verdict-5'), 'unselectable');
  assert.match(page.url(), /key=5/);

  const place = () => page.getByTestId('key-1').getAttribute('aria-valuetext');
  await page.getByTestId('key-1').focus();
  const before = await place();
  await page.keyboard.press('Shift+ArrowUp');
  assert.notEqual(await place(), before);
  assert.equal(await page.evaluate(() => document.activeElement.dataset.testid), 'key-1');

  const weight = await value(page, 'weight-1');
  await page.getByTestId('query').focus();
  for (let i = 0; i < 5; ++i) await page.keyboard.press('Shift+ArrowLeft');
  assert.notEqual(await value(page, 'weight-1'), weight);
});

const presets = {
  hidden: { selectable: 4, tied: 0, unselectable: 1 },
  neighbour: { selectable: 5, tied: 0, unselectable: 0 },
  inside: { selectable: 3, tied: 0, unselectable: 1 },
  scaling: { selectable: 9, tied: 0, unselectable: 0 },
  layernorm: { selectable: 7, tied: 0, unselectable: 0 },
  projection: { selectable: 3, tied: 0, unselectable: 2 },
  planes: { selectable: 0, tied: 5, unselectable: 0 },
  majority: { selectable: 4, tied: 0, unselectable: 0 },
  edge: { selectable: 3, tied: 1, unselectable: 0 },
  equal: { selectable: 2, tied: 2, unselectable: 0 },
  zero: { selectable: 0, 'tied-up-to-rounding': 4, unselectable: 0 }, // a key just beside 0 would be on the circle
  one: { selectable: 1, tied: 0, unselectable: 0 },
};
test('Every example shows the fact it tells', async t => {
  const page = await select(t);
  const offered = await page.getByTestId('preset').locator('option').evaluateAll(options => options.map(option => option.value).filter(Boolean));
  assert.deepEqual(offered.sort(), Object.keys(presets).sort());
  for (const [id, counts] of Object.entries(presets)) {
    await page.getByTestId('preset').selectOption(id);
    for (const [kind, count] of Object.entries(counts)) assert.equal(await text(page, `count-${kind}`), String(count), `${id}: ${kind}`);
    assert.notEqual(await text(page, 'fact'), '');
  }
  await page.getByTestId('preset').selectOption('majority');
  for (let key = 1; key <= 4; ++key) assert.ok(Math.abs((await value(page, `weight-${key}`)) - 0.25) < 1e-12);
  assert.deepEqual(page.problems, []);
});

test('The address holds the state: a reload and back show the same page', async t => {
  const page = await select(t);
  await slide(page, 'magnitude', 2.5);
  await slide(page, 'temperature', 1.25);
  await page.getByTestId('scaling').check();
  await page.getByTestId('add-key').click();
  const seen = async () => [await page.getByTestId('select-view').locator('table').innerText(), await text(page, 'magnitude-value'), await text(page, 'temperature-value'), await text(page, 'summary')];
  const before = await seen();
  await page.reload();
  await page.getByTestId('select-view').waitFor();
  assert.deepEqual(await seen(), before);
  await page.getByTestId('remove-key').click();
  assert.equal(await page.getByTestId('row-6').count(), 0);
  await page.goBack();
  await page.getByTestId('row-6').waitFor();
  assert.deepEqual(await seen(), before);
});

test('A link that is broken says what was wrong, and the default is shown', async t => {
  const many = Array.from({ length: 25 }, (_, i) => `${i},1`).join(';');
  const broken = {
    '#select?keys=NaN': /keys hold “NaN”, which is not a number from −100 to 100/,
    '#select?keys=1e400,2;3,4': /keys hold “1e400”/,
    '#select?keys=%ZZ': /keys hold “%ZZ”/,
    '#select?keys=1,2;3': /differ in their number of coordinates/,
    '#select?keys=1;2': /have 1 coordinate, not 2 or 3/,
    '#select?keys=1,;2,3': /keys hold an empty place/,
    [`#select?keys=${many}`]: /has 25 keys, more than the 24 a link can hold/,
    '#nonsense': /there is no view “nonsense”/,
    '#select?norm=batchnorm': /norm “batchnorm” is none of none, center, rmsnorm, layernorm/,
    '#select?temperature=0&query=1,x': /query holds “x”.*; its temperature “0” is not from 0.05 to 5/,
    '#select?key=9': /chooses key “9” of 5/,
    [`#select?keys=${encodeURIComponent(markup)}`]: /keys hold “<img/,
  };
  const page = await select(t);
  assert.equal(await page.getByTestId('bad-link').isVisible(), false);
  for (const [hash, words] of Object.entries(broken)) {
    await page.evaluate(next => (location.hash = next), hash);
    await page.getByTestId('bad-link').filter({ hasText: words }).waitFor();
    assert.match(await text(page, 'bad-link'), /^The link could not be followed: .*; the default is shown instead\.$/);
    assert.equal(await page.getByTestId('bad-link').getAttribute('role'), 'alert');
    assert.equal(await text(page, 'count-selectable'), '5', hash);
    assert.equal(await page.getByTestId('preset').inputValue(), 'neighbour');
  }
  await page.reload();
  await page.getByTestId('bad-link').filter({ hasText: '<img' }).waitFor();
  assert.equal(await page.locator('img').count(), 0);
  await page.getByTestId('scaling').check();
  assert.equal(await page.getByTestId('bad-link').isVisible(), false);
  await page.evaluate(() => (location.hash = '#select?keys=1,2;3,4'));
  await page.getByTestId('row-3').waitFor({ state: 'detached' });
  assert.equal(await page.getByTestId('bad-link').isVisible(), false);
  assert.deepEqual(page.problems, []);
});

test('The text of an example stays while its key is lengthened and goes when a key is moved; the slider reaches a key dragged far', async t => {
  const page = await select(t);
  await slide(page, 'magnitude', 3);
  assert.equal(await page.getByTestId('preset').inputValue(), 'neighbour');
  assert.match(await text(page, 'fact'), /^Lengthen Key 3/);
  const key = await page.getByTestId('key-1').locator('circle').first().boundingBox();
  await page.mouse.move(key.x + key.width / 2, key.y + key.height / 2);
  await page.mouse.down();
  await page.mouse.move(key.x - 80, key.y - 80, { steps: 3 });
  await page.mouse.move(5, 5, { steps: 3 });
  await page.mouse.up();
  assert.equal(await page.getByTestId('preset').inputValue(), '');
  assert.equal(await text(page, 'fact'), '');
  const length = Number(await text(page, 'magnitude-value'));
  assert.ok(length > 4, String(length));
  const [at, end] = await page.getByTestId('magnitude').evaluate(input => [Number(input.value), Number(input.max)]);
  assert.ok(Math.abs(at - length) <= 0.05 && end >= length && end < length + 1, `${at} of ${end}, length ${length}`);
  await slide(page, 'magnitude', 1);
  assert.equal(await page.getByTestId('magnitude').evaluate(input => Number(input.max)), end);
});

test('Bounds and doubts are named: the depth of an unselectable key, the sign beside a tie, the column of keys', async t => {
  const page = await select(t, '#select?keys=1.25,-0.5;0.25,1.25;-1,-0.75;0,0');
  const titles = () => page.locator('.select-table thead th').allTextContents();
  assert.match(await text(page, 'margin-4'), /^depth ≥ 0\.\d+$/);
  assert.equal((await titles())[1], 'key');
  assert.equal(await page.getByTestId('fragile-note').count(), 0);
  await page.getByTestId('preset').selectOption('edge');
  assert.equal(await text(page, 'verdict-4'), 'tied');
  assert.match(await text(page, 'fragile-note'), /^≈ Decided exactly for the numbers given/);
  assert.ok(await page.getByTestId('fragile-note').isVisible());
  await page.getByTestId('scaling').check();
  assert.equal((await titles())[1], 'key after the norm');
});

test('A certificate in the table is a cell like the others: the bar of the explanation is not drawn there', async t => {
  const page = await select(t);
  const bars = await page.locator('.select-table td').evaluateAll(cells => [...new Set(cells.map(cell => getComputedStyle(cell).borderLeftWidth))]);
  assert.deepEqual(bars, ['0px']);
});

for (const width of [1280, 1200, 1190, 1000, 390]) {
  test(`At a width of ${width} nothing sticks out and no number wraps`, async t => {
    const page = await select(t, '#select?keys=0,0;100,100&query=100,100&temperature=0.05', { width });
    assert.equal(await text(page, 'bar-2'), '100.0\u00a0%');
    const { right, edge, wide, lines } = await page.evaluate(() => ({
      right: Math.max(...[...document.querySelectorAll('.side *')].map(part => part.getBoundingClientRect().right)),
      edge: document.querySelector('.select-view').getBoundingClientRect().right,
      wide: [...document.querySelectorAll('.counts div, .counts dt, .bar-value')].filter(part => part.scrollWidth > part.clientWidth + 1).map(part => part.textContent),
      lines: [...document.querySelectorAll('.bar-value')].map(part => part.getBoundingClientRect().height),
    }));
    assert.ok(right <= edge + 0.5, `${right} beyond ${edge}`);
    assert.deepEqual(wide, []);
    assert.ok(lines.every(height => height < 30), String(lines));
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  });
}

test('On a small screen the slider, the figure and the sentence share it', async t => {
  for (const hash of ['#select', plane]) {
    const page = await select(t, hash, { width: 390, height: 844 });
    const ends = await page.evaluate(() => ['figure', 'magnitude', 'summary'].map(id => document.querySelector(`[data-testid=${id}]`).getBoundingClientRect()).flatMap(box => [box.top, box.bottom]));
    assert.ok(Math.max(...ends) - Math.min(...ends) < 700, `${hash}: ${ends}`);
    const figure = await page.getByTestId('figure').boundingBox();
    assert.ok(figure.width > 300 && figure.height > 300);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
  }
});

test('Copy link puts the address on the clipboard', async t => {
  const page = await select(t, plane, { permissions: ['clipboard-read', 'clipboard-write'] });
  await slide(page, 'magnitude', 2.5);
  await page.getByTestId('copy-link').click();
  await page.getByText('The link is on the clipboard.').waitFor();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), page.url());
});

test('A file of planar keys becomes keys that can be moved; a larger one is decided in all its dimensions', async t => {
  const page = await select(t);
  await page.getByTestId('file').setInputFiles({ name: 'square.npy', mimeType: '', buffer: npy([5, 2], [1, 1, -1, 1, -1, -1, 1, -1, 0, 0]) });
  await page.getByTestId('notice').getByText('square.npy: 5 × 2, float64').waitFor();
  assert.equal(await text(page, 'count-unselectable'), '1');
  assert.equal(await text(page, 'verdict-5'), 'unselectable');
  // Numbered as by the program, which counts from 0: in the table, the figure, the sentence, the controls and the link.
  assert.equal(await page.getByTestId('label-5').inputValue(), 'key 4');
  assert.equal(await page.getByTestId('key-5').locator('text').textContent(), '4');
  assert.match(await text(page, 'summary'), /^key 4 is unselectable/);
  assert.match(await text(page, 'certificate-5'), /^= [\d.]+ · key [0-3]/);
  assert.equal(await text(page, 'remove-key'), 'Remove key 0');
  await page.getByTestId('add-key').click();
  assert.equal(await page.getByTestId('label-6').inputValue(), 'key 5');
  await page.reload();
  assert.equal(await page.getByTestId('label-1').inputValue(), 'key 0');

  const random = generator(3), values = Array.from({ length: 60 * 6 }, () => random() - 0.5);
  const directory = temporaryDirectory(t), file = path.join(directory, 'six.npy');
  writeFileSync(file, npy([60, 6], values));
  const { sets: [native] } = JSON.parse(normscope('keys', file, '--json'));
  await page.getByTestId('file').setInputFiles(file);
  await page.getByTestId('shadow').waitFor();
  for (const kind of ['selectable', 'tied', 'unselectable']) assert.equal(await text(page, `count-${kind}`), String(native.counts[kind]));
  assert.match(await text(page, 'caption'), /principal directions/);
  const hidden = native.keys.findIndex(key => key.verdict === 'unselectable');
  assert.match(await text(page, 'summary'), new RegExp(`key ${hidden}\\b.* unselectable`));
  assert.match(await text(page, `row-${hidden + 1}`), new RegExp(`^key ${hidden}\\(`));
  assert.equal(await page.getByTestId('shadow').locator('title').nth(hidden).textContent(), `key ${hidden}: unselectable`);
  const [download] = await Promise.all([page.waitForEvent('download'), page.getByTestId('save-csv').click()]);
  assert.match(readFileSync(await download.path(), 'utf8').split('\r\n')[1], /^0,key 0,/);
  await page.getByTestId('scaling').check();
  assert.equal(await text(page, 'count-selectable'), '60');
  await page.getByTestId('close-file').click();
  await page.getByTestId('figure').waitFor();
  assert.deepEqual(page.problems, []);
});

test('Keys at the ends of what a double holds are drawn and decided', async t => {
  const page = await select(t);
  const square = [1, 1, -1, 1, -1, -1, 1, -1, 0.25, 0.5];
  for (const [name, scale] of [['large', 1.7e308], ['small', 1e-300], ['far', 1e6]]) {
    await page.getByTestId('file').setInputFiles({ name: `${name}.npy`, mimeType: '', buffer: npy([5, 2], square.map(x => x * scale)) });
    await page.getByTestId('notice').getByText(`${name}.npy: 5 × 2`).waitFor();
    if (scale >= 1) { // small ones can be moved, and are drawn as they are: at 0
      const places = await page.getByTestId('shadow').locator('circle').evaluateAll(circles => circles.map(circle => [circle.cx.baseVal.value, circle.cy.baseVal.value]));
      assert.equal(places.length, 5);
      assert.ok(places.flat().every(x => x >= 20 && x <= 540), `${name}: ${places}`);
      assert.ok(new Set(places.map(String)).size === 5, `${name}: ${places}`);
      assert.match(await text(page, 'caption'), /hold 100 % of their variance/);
    }
    assert.equal(await text(page, 'verdict-5'), 'unselectable');
    assert.equal(await text(page, 'count-selectable'), '4');
    assert.doesNotMatch(await page.getByTestId('select-view').textContent(), /NaN|undefined/);
    assert.match(await text(page, 'certificate-1'), /^Query \(0\.\d+, 0\.\d+\) scores/);
    for (const norm of ['projection', 'scaling', 'projection', 'scaling']) {
      await page.getByTestId(norm).click();
      assert.doesNotMatch(await page.getByTestId('select-view').textContent(), /NaN|undefined/);
    }
  }
  assert.deepEqual(page.problems, []);
});

test('A file that is wrong gets a sentence, and the page goes on', async t => {
  const page = await select(t);
  const whole = npy([4, 2], [1, 2, 3, 4, 5, 6, 7, 8]);
  const bad = {
    'empty.npy': Buffer.alloc(0),
    'noise.npy': Buffer.from('not an array at all, but a text of some length'),
    'short.npy': whole.subarray(0, 150),
    'huge.npy': Buffer.concat([npy([2 ** 30, 2 ** 20], []), Buffer.alloc(8)]),
    'nan.npy': npy([30, 2], Array.from({ length: 60 }, (_, i) => (i === 7 ? NaN : i % 5))),
    'cube.npy': npy([2, 2, 2], [1, 2, 3, 4, 5, 6, 7, 8]),
    'none.npy': npy([0, 2], []),
    'archive.npz': Buffer.from('PK\x03\x04 and so on', 'latin1'),
    [`${markup}.npy`]: Buffer.from('nothing'),
  };
  for (const [name, buffer] of Object.entries(bad)) {
    await page.getByTestId('file').setInputFiles({ name, mimeType: '', buffer });
    await page.getByTestId('problem').filter({ hasText: name.includes('<') ? 'img src=x' : name.replace(/\..*/, '') }).waitFor();
    assert.match(await text(page, 'problem'), /\w{3}.*\.?$/);
    if (name === 'nan.npy') t.diagnostic(await text(page, 'problem'));
    assert.equal(await text(page, 'count-selectable'), '5', name);
  }
  assert.equal(await page.locator('img').count(), 0);
  assert.deepEqual(page.problems, []);
});

test('A name with markup in it is shown as text', async t => {
  const page = await select(t, `#select?labels=${encodeURIComponent(encodeURIComponent(markup))}`);
  assert.ok((await page.getByText(markup).count()) > 0);
  assert.equal(await page.getByTestId('label-1').inputValue(), markup);
  assert.equal(await page.locator('img').count(), 0);
  await page.getByTestId('label-2').fill(markup);
  await page.getByTestId('label-2').press('Enter');
  await page.getByTestId('label-2').blur();
  assert.match(page.url(), /labels=/);
  assert.equal(await page.locator('img').count(), 0);
  assert.deepEqual(page.problems, []);
});

test('The picture and the table can be taken away', async t => {
  const page = await select(t, plane, { colorScheme: 'dark' });
  const save = async id => {
    const [download] = await Promise.all([page.waitForEvent('download'), page.getByTestId(id).click()]);
    return readFileSync(await download.path(), 'utf8');
  };
  const picture = await save('save-svg');
  assert.match(picture, /^<svg[^>]*xmlns="http:\/\/www.w3.org\/2000\/svg"/);
  assert.match(picture, /fill="rgb\(21, 23, 26\)"/);
  assert.doesNotMatch(picture, /var\(--/);
  assert.equal(await page.evaluate(text => new DOMParser().parseFromString(text, 'image/svg+xml').querySelectorAll('parsererror').length, picture), 0);
  const rows = (await save('save-csv')).trim().split('\r\n');
  assert.equal(rows.length, 6);
  assert.match(rows[0], /^key,label,x1,x2,verdict/);
  assert.match(rows[1], /selectable/);
});

// Sets of every shape; a third on a small grid, where ties, equal keys and keys on faces abound.
function randomSets() {
  const random = generator(2024), batches = [];
  const gaussian = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  for (const [n, d] of [[1, 2], [2, 2], [3, 2], [5, 2], [8, 2], [12, 2], [4, 3], [7, 3], [10, 3], [16, 3], [6, 1], [20, 4], [24, 6], [30, 8], [40, 5], [9, 16]]) {
    for (const kind of ['gaussian', 'grid', 'equal']) {
      const sets = 21, values = [];
      for (let set = 0; set < sets; ++set) {
        const rows = Array.from({ length: n }, () => Array.from({ length: d }, () => (kind === 'gaussian' ? gaussian() : Math.floor(3 * random()) - 1)));
        if (kind === 'equal' && n > 1) rows[n - 1] = rows[0].map((x, c) => (n > 2 ? (x + rows[1][c]) / 2 : x));
        values.push(...rows.flat());
      }
      batches.push({ kind, sets, n, d, values });
    }
  }
  return batches;
}

test('On 1000 random sets the page and the program give the same verdicts and margins', async t => {
  const page = await select(t);
  const directory = temporaryDirectory(t), file = path.join(directory, 'sets.npy');
  let compared = 0, margins = 0, worst = 0;
  const seen = new Set();
  for (const { kind, sets, n, d, values } of randomSets()) {
    writeFileSync(file, npy([sets, n, d], values));
    const native = JSON.parse(normscope('keys', file, '--json', '--quiet')).sets;
    const web = await page.evaluate(({ sets, n, d, values }) => Array.from({ length: sets }, (_, i) => {
      const { keys, rank, error } = window.normscope.decideKeys(values.slice(i * n * d, (i + 1) * n * d), n, d, 2 ** -53);
      if (error) throw new Error(`set ${i} of ${n} × ${d}: ${error}`);
      return { rank, keys: keys.map(({ verdict, margin }) => ({ verdict, margin: String(margin) })) };
    }), { sets, n, d, values });
    native.forEach((set, i) => {
      assert.equal(web[i].rank, set.rank);
      set.keys.forEach((key, j) => {
        const where = `key ${j} of set ${i} of ${n} × ${d}`;
        assert.equal(web[i].keys[j].verdict, key.verdict, where);
        seen.add(key.verdict);
        if (key.verdict !== 'selectable' || n === 1) return;
        ++margins;
        const difference = Math.abs(Number(web[i].keys[j].margin) - key.margin) / key.margin;
        worst = Math.max(worst, difference);
        assert.ok(difference < 1e-11, `margin of ${where}: ${web[i].keys[j].margin} on the page, ${key.margin} by the program`);
      });
      ++compared;
    });
  }
  assert.ok(compared >= 1000);
  assert.equal(seen.size, 3);
  t.diagnostic(`${compared} sets, ${margins} margins, largest relative difference of a margin ${worst.toExponential(1)}`);
});
