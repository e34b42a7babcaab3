// The drawing kit of the page and of the reports' script beside what C++ draws (tests/unit/ticks_test.cc records it).
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { before, test } from 'node:test';
import { bundled, source } from './harness.mjs';

const drawn = JSON.parse(readFileSync(path.join(source, 'tests/golden/drawing.json'), 'utf8'));
let kit;
before(async () => {
  const code = await bundled({
    configFile: false,
    build: { lib: { entry: path.join(source, 'web/src/kit/kit.ts'), formats: ['es'] } },
  });
  kit = await import('data:text/javascript,' + encodeURIComponent(code));
});

test('ticks are those of the figures, on linear and logarithmic axes', () => {
  assert.ok(drawn.axes.length > 300);
  for (const [low, high, scale, across, up] of drawn.axes) {
    for (const [expected, length, horizontal] of [[across, 430, true], [up, 260, false]]) {
      const axis = new kit.Axis([low, high], scale === 'log', 0, length);
      const labels = kit.ticks(axis, horizontal).map(tick => tick.label + (tick.power ? '^' + tick.power : ''));
      assert.deepEqual(labels, expected, `${scale}, ${low} to ${high}, ${length} pixels`);
    }
  }
});

test('ticks stand at the values that their labels say, also of a part', () => {
  const axis = new kit.Axis([1e-3, 1e3], true, 0, 400);
  for (const { value, label } of kit.ticks(axis, true)) assert.equal(value, Number(label.replaceAll(',', '')));
  axis.show({ low: 0.25, high: 0.75 });
  assert.deepEqual(axis.ends().map(end => +Math.log10(end).toFixed(9)), [-1.5, 1.5]);
  assert.equal(+axis.at(1).toFixed(6), 200);
  assert.equal(+axis.place(100).toFixed(9), 0.375);
  axis.show({ low: -3, high: 4 });
  assert.deepEqual(axis.ends(), [1e-3, 1e3]);
});

test('dashes are those of the figures, and so are the colours on light ground', () => {
  assert.deepEqual(kit.dashes, drawn.dashes);
  const style = readFileSync(path.join(source, 'web/src/style.css'), 'utf8');
  const colours = [...style.matchAll(/--colour-\d: (?:light-dark\()?(#\w+|var\(--ink\))/g)].map(([, colour]) => colour);
  assert.deepEqual(colours.map(colour => (colour === 'var(--ink)' ? 'currentColor' : colour)), drawn.colours);
  colours.forEach((_, i) => assert.equal(kit.colour(i), `var(--colour-${i + 1})`));
});

test('tables come back from text as they went', () => {
  const rows = [['a', 'b, "c"'], ['', 'two\nlines'], ['1', '']];
  assert.deepEqual(kit.parseCsv(kit.csv(rows)), rows);
});
