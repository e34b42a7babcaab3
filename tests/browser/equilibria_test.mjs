// The equilibria view against the program.
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'node:test';
import { normscope, open, webFolder } from './harness.mjs';

const page = query => 'file://' + path.join(webFolder, 'index.html') + '#equilibria' + (query ? '?' + query : '');
const view = async (t, query, options) => {
  const opened = await open(t, page(query), options);
  await opened.waitForFunction(() => document.querySelector('[data-testid=equilibria-apart]')?.dataset.value);
  return opened;
};
const value = (opened, id) => opened.getByTestId(id).getAttribute('data-value').then(Number);
const text = (opened, id) => opened.getByTestId(id).textContent();

for (const [w, seed] of [[2, 0], [1.1, 5], [10, 3]]) {
  test(`Equilibria: points, arcs and shares at w = ${w} are those of the program`, async t => {
    const opened = await view(t, `w=${w}&seed=${seed}&a1=60&a2=300&step=60`);
    const { weights: [weight] } = JSON.parse(normscope('equilibria', '--json', '--w', w, '--seed', seed, '--starts', 2000, '--steps', 1000, '--trajectory', '60,300'));
    assert.equal(await value(opened, 'equilibria-formula'), weight.arc.formula);
    assert.equal(await value(opened, 'equilibria-arc'), weight.arc.share);
    // A start on the border of two basins may fall to the other side by the last bit of a cosine.
    assert.ok(Math.abs(await value(opened, 'equilibria-apart') - weight.coupled.ranks[1].share) <= 2 / 2000);
    assert.ok(Math.abs(await value(opened, 'equilibria-collapsed') - weight.coupled.ranks[0].share) <= 2 / 2000);
    for (const point of weight.fixed_points) {
      const multiplier = await value(opened, `equilibria-point-${point.name}`);
      if (point.multiplier === null) assert.ok(Number.isNaN(multiplier));
      else assert.ok(Math.abs(multiplier - point.multiplier) <= 1e-12);
    }
    assert.equal(await text(opened, 'equilibria-fate'), weight.trajectories[0].fate);
    assert.deepEqual(opened.problems, []);
    assert.deepEqual(opened.requests.filter(address => !address.startsWith('file:')), []);
  });
}

test('Equilibria: opposite tokens meet a zero row, which is counted and told', async t => {
  const opened = await view(t, '');
  await opened.getByTestId('equilibria-example').selectOption('90,270');
  const { weights: [weight] } = JSON.parse(normscope('equilibria', '--json', '--w', 2, '--starts', 10, '--steps', 1000, '--trajectory', '90,270'));
  assert.ok(weight.trajectories[0].zero_rows > 0);
  assert.match(await text(opened, 'equilibria-policy'), new RegExp(`stays 0 in that layer and is counted.*met ${weight.trajectories[0].zero_rows}\\.`));
  assert.equal(await text(opened, 'equilibria-fate'), weight.trajectories[0].fate);
});

test('Equilibria: a click on the map, or an arrow key, starts a trajectory there', async t => {
  const opened = await view(t, 'a1=85&a2=200');
  const svg = await opened.getByTestId('equilibria-map').locator('svg').boundingBox();
  await opened.mouse.click(svg.x + svg.width * (62 + 380 / 4) / 460, svg.y + svg.width * (10 + 380 / 2) / 460);
  await opened.waitForFunction(() => /a1=(89|90|91)\b/.test(location.hash) && /a2=(179|180|181)\b/.test(location.hash)); // a pixel is a degree and more
  await opened.evaluate(() => (location.hash = location.hash.replace(/a1=\d+/, 'a1=90').replace(/a2=\d+/, 'a2=180')));
  await opened.getByTestId('equilibria-map').focus();
  await opened.keyboard.press('ArrowRight');
  await opened.keyboard.press('Shift+ArrowUp');
  await opened.waitForFunction(() => /a1=91/.test(location.hash) && /a2=190/.test(location.hash));
  assert.equal(await opened.getByTestId('equilibria-a1-number').inputValue(), '91');
  await opened.getByTestId('equilibria-restart').click();
  await opened.waitForFunction(() => /^[1-9]\d* of 60$/.test(document.querySelector('[data-testid=equilibria-step-value]').textContent));
  assert.deepEqual(opened.problems, []);
});

test('Equilibria: w of 1 and below gets the sentence of the core', async t => {
  const opened = await view(t, '');
  await opened.getByTestId('equilibria-w-number').fill('0.5');
  const problem = opened.getByTestId('equilibria-w-error');
  await problem.waitFor({ state: 'visible' });
  assert.match(await problem.textContent(), /^w must be above 1 and at most 1e\+06, not 0.5: the points A and B/);
  await opened.getByTestId('equilibria-w-number').fill('3');
  await problem.waitFor({ state: 'hidden' });
  await opened.getByTestId('equilibria-w').focus();
  await opened.keyboard.press('ArrowRight');
  await opened.waitForFunction(() => !/w=3&|w=3$/.test(location.hash));
  assert.deepEqual(opened.problems, []);
});

test('Equilibria: settings stand in the address and come back', async t => {
  const opened = await view(t, 'w=4&a1=265&a2=20&step=33&seed=9');
  const numbers = () => opened.locator('.depth-numbers').textContent();
  const before = await numbers();
  await opened.reload();
  await opened.waitForFunction(() => document.querySelector('[data-testid=equilibria-apart]')?.dataset.value);
  assert.equal(await numbers(), before);
  assert.equal(await opened.getByTestId('equilibria-w-number').inputValue(), '4');
  assert.equal(await opened.getByTestId('equilibria-example').inputValue(), '265,20');
  assert.equal(await text(opened, 'equilibria-step-value'), '33 of 60');
  assert.match(await text(opened, 'equilibria-summary'), /^w = 4: from 265° and 20° the tokens stay apart\./);
});

test('Equilibria: figures are saved as SVG and CSV', async t => {
  const opened = await view(t, '');
  const saved = async id => {
    const [download] = await Promise.all([opened.waitForEvent('download'), opened.getByTestId(id).click()]);
    return (await readFile(await download.path(), 'utf8')).replaceAll('\r', '');
  };
  for (const figure of ['circle', 'map']) assert.doesNotMatch(await saved(`equilibria-${figure}-svg`), /var\(/);
  const map = (await saved('equilibria-map-csv')).trim().split('\n');
  assert.equal(map.length, 1 + 61 * 61);
  assert.ok(map.some(row => row.endsWith(',apart')) && map.some(row => row.endsWith(',collapsed')));
  assert.equal((await saved('equilibria-circle-csv')).trim().split('\n').length, 1 + 4 + 2 * 61);
});

test('Equilibria: blue is apart and vermillion is collapse, as in the reports', async t => {
  const opened = await view(t, '');
  const drawn = id => opened.getByTestId(id).locator('path:has(title)').evaluateAll(paths => paths.map(path => {
    const style = getComputedStyle(path);
    return [path.querySelector('title').textContent, style.stroke === 'none' ? style.fill : style.stroke];
  }));
  const blue = 'rgb(0, 114, 178)', vermillion = 'rgb(213, 94, 0)';
  await opened.getByTestId('equilibria-map').locator('path title').first().waitFor({ state: 'attached' });
  for (const id of ['equilibria-circle', 'equilibria-map']) {
    const colours = (await drawn(id)).filter(([words]) => /apart|collapsed/.test(words));
    assert.equal(colours.length, 2, id);
    for (const [words, colour] of colours) assert.equal(colour, /apart/.test(words) ? blue : vermillion, `${id}: ${words}`);
  }
});

test('Equilibria: dark and narrow screens need no scrolling sideways', async t => {
  for (const options of [{ width: 390, height: 800 }, { width: 390, height: 800, colorScheme: 'dark' }, { colorScheme: 'dark' }]) {
    const opened = await view(t, '', options);
    assert.ok(await opened.evaluate(() => document.documentElement.scrollWidth <= innerWidth), JSON.stringify(options));
    assert.deepEqual(opened.problems, []);
    await opened.context().close();
  }
});
