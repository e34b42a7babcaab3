// The explanation, section by section: what it says, what it can be asked, and that everyone can reach it.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { test } from 'node:test';
import { medianFrame, normscope, open, source, temporaryDirectory, timeFrames, webFolder } from './harness.mjs';
import { serve } from './serve.mjs';

const sections = ['score', 'hull', 'projection', 'scaling', 'layernorm', 'often', 'model', 'collapse', 'equilibria', 'majority', 'audit'];
const withKeys = ['score', 'hull', 'projection', 'scaling', 'layernorm'];
const axe = readFileSync(createRequire(path.join(source, 'web/package.json')).resolve('axe-core/axe.min.js'), 'utf8');

async function explain(t, hash = '', options = {}) {
  const page = await open(t, (await serve(t, webFolder)) + hash, options);
  page.setDefaultTimeout(120_000); // a machine may be busy
  await page.getByTestId('explain-view').waitFor();
  return page;
}
const text = (page, id) => page.getByTestId(id).textContent();
const goTo = async (page, id) => {
  await page.getByTestId(`to-${id}`).click();
  await page.locator(`#explain-${id}[data-mounted]`).waitFor();
};
const slide = (page, id, to) => page.getByTestId(id).evaluate((input, next) => {
  input.value = next;
  input.dispatchEvent(new Event('input', { bubbles: true }));
}, String(to));
const frame = page => page.evaluate(() => new Promise(resolve => requestAnimationFrame(() => requestAnimationFrame(resolve))));
const data = (page, id, name) => page.getByTestId(id).evaluate((element, key) => element.dataset[key], name);

// The query turned by arrow keys over the whole sphere, in rows of constant height.
async function sweep(page) {
  await page.getByTestId('hero-query').focus();
  for (let row = 0; row < 9; ++row) {
    for (let i = 0; i < 36; ++i) {
      await page.keyboard.press('Shift+ArrowRight');
      if ((await page.getByTestId('hero').getAttribute('data-solved')) === 'true') return true;
    }
    await page.keyboard.press('Shift+ArrowUp');
    await page.keyboard.press('Shift+ArrowUp');
  }
  await frame(page);
  return (await page.getByTestId('hero').getAttribute('data-solved')) === 'true';
}

test('Key 2 cannot be selected without scaling, however the query is turned, and its best rank is 2', async t => {
  const page = await explain(t, '', { reducedMotion: 'reduce' });
  assert.equal(await text(page, 'hero-verdict'), 'Key 2 can never be selected.');
  for (const norm of ['none', 'center']) {
    await page.getByTestId(`hero-${norm}`).click();
    assert.equal(await sweep(page), false, norm);
    assert.equal(await data(page, 'challenge-rank', 'best'), '2', norm);
    await page.getByTestId('challenge-try').click();
    assert.match(await text(page, 'challenge-outcome'), /None of them put Key 2 first; its best rank was 2/);
    assert.match(await text(page, 'hero-certificate'), /mixture of others/);
  }
  assert.deepEqual(page.problems, []);
});

for (const norm of ['rmsnorm', 'layernorm']) {
  test(`After ${norm} the challenge can be met`, async t => {
    const page = await explain(t, '', { reducedMotion: 'reduce' });
    await page.getByTestId(`hero-${norm}`).click();
    assert.equal(await text(page, 'hero-verdict'), 'Every key can be selected.');
    assert.equal(await sweep(page), true);
    assert.match(await text(page, 'challenge-outcome'), /^Selected/);
    assert.equal(await data(page, 'challenge-rank', 'rank'), '1');
  });
}

test('The dot on the sphere of directions turns the query to where it is dragged', async t => {
  const page = await explain(t, '', { reducedMotion: 'reduce' });
  const box = await page.locator('.globe').first().boundingBox();
  const dot = await page.getByTestId('hero-direction').boundingBox();
  await page.mouse.move(dot.x + dot.width / 2, dot.y + dot.height / 2);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.3, box.y + box.height * 0.4, { steps: 4 });
  await page.mouse.up();
  await frame(page);
  const moved = await page.getByTestId('hero-direction').boundingBox();
  assert.ok(Math.abs(moved.x + moved.width / 2 - box.x - box.width * 0.3) < 4);
  assert.ok(Math.abs(moved.y + moved.height / 2 - box.y - box.height * 0.4) < 4);
});

test('What the figures show is what the program says of the same keys', async t => {
  const page = await explain(t, '', { reducedMotion: 'reduce' });
  const keys = [[-0.2, 1.1, -0.7], [0.5, -0.3, -0.1], [1.3, 0.1, -2], [0.7, -0.9, 1], [-1.4, -0.4, 0.4]];
  const file = path.join(temporaryDirectory(t), 'keys.npy');
  const header = `{'descr': '<f8', 'fortran_order': False, 'shape': (5, 3), }`.padEnd(117) + '\n';
  const bytes = Buffer.alloc(128 + 8 * 15);
  bytes.write('\x93NUMPY\x01\x00', 'latin1');
  bytes.writeUInt16LE(118, 8);
  bytes.write(header, 10, 'latin1');
  keys.flat().forEach((number, i) => bytes.writeDoubleLE(number, 128 + 8 * i));
  (await import('node:fs')).writeFileSync(file, bytes);
  for (const norm of ['none', 'center', 'rmsnorm', 'layernorm']) {
    const told = JSON.parse(normscope('keys', file, '--norm', norm, '--json'));
    const verdicts = told.sets ? told.sets[0].keys : told.keys;
    await page.getByTestId(`hero-${norm}`).click();
    await frame(page);
    const shown = await page.getByTestId('hero-space').locator('.marker').evaluateAll(markers =>
      markers.sort((a, b) => a.dataset.key - b.dataset.key).map(marker => marker.dataset.state));
    assert.deepEqual(shown, verdicts.map(key => key.verdict), norm);
  }
});

test('Every section is reached by keyboard from the contents, and by its address', async t => {
  const page = await explain(t);
  for (const id of sections) {
    await page.getByTestId(`to-${id}`).focus();
    await page.keyboard.press('Enter');
    await page.locator(`#explain-${id}[data-mounted]`).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement.id), `explain-${id}`);
    assert.ok(page.url().endsWith(`#explain?section=${id}`));
    const top = await page.locator(`#explain-${id}`).evaluate(element => element.getBoundingClientRect().top);
    assert.ok(id === 'audit' || Math.abs(top) < 60, `${id} is at ${top}`);
  }
  assert.deepEqual(page.problems, []);
  const there = await explain(t, '#explain?section=often');
  const top = await there.locator('#explain-often').evaluate(element => element.getBoundingClientRect().top);
  assert.ok(Math.abs(top) < 60, `often is at ${top}`);
});

test('Pointing at a key lights its point, arc, bar, row and every term of a formula that speaks of it', async t => {
  const page = await explain(t, '', { reducedMotion: 'reduce' });
  for (const id of withKeys) {
    await goTo(page, id);
    const section = page.getByTestId(`section-${id}`);
    if (id === 'hull') await slide(page, 'hull-length', 3);
    await frame(page);
    assert.ok((await section.locator('math [data-key="2"]').count()) > 0, `${id} has no term of Key 2`);
    await section.locator('.figure .marker[data-key="2"] .disc').hover();
    assert.equal(await page.getByTestId('explain-view').getAttribute('data-lit'), '2');
    const opacity = key => section.locator(`[data-key="${key}"]`).evaluateAll(elements => [...new Set(elements.map(element => getComputedStyle(element).opacity))]);
    assert.deepEqual(await opacity(2), ['1'], id);
    assert.deepEqual(await opacity(1), ['0.28'], id);
    // And from the term to the figure.
    await section.locator('math [data-key="3"], math [data-key="2"]').last().hover();
    assert.match(await page.getByTestId('explain-view').getAttribute('data-lit'), /[23]/);
  }
  await goTo(page, 'hull');
  for (const part of ['.marker', '.arc', 'tr', 'math mrow']) assert.ok((await page.getByTestId('section-hull').locator(`${part}[data-key="3"]`).count()) > 0, part);
});

test('A longer Key 3 takes the arc of Key 2, moves no other key, and the certificate is arithmetic that holds', async t => {
  const page = await explain(t, '#explain?section=hull', { reducedMotion: 'reduce' });
  const places = () => page.getByTestId('hull-figure').locator('.marker').evaluateAll(markers => markers.map(marker => marker.getAttribute('transform')));
  const before = await places();
  assert.equal(await page.getByTestId('hull-arc-2').count(), 1);
  await slide(page, 'hull-length', 3);
  await frame(page);
  const after = await places();
  assert.deepEqual(after.filter((_, i) => i !== 2), before.filter((_, i) => i !== 2));
  assert.notEqual(after[2], before[2]);
  assert.equal(await page.getByTestId('hull-arc-2').count(), 0);
  assert.equal(await text(page, 'hull-verdict'), 'Key 2 can never be selected.');
  const weights = await page.getByTestId('hull-certificate').locator('math').first().locator('mrow > mn').evaluateAll(numbers => numbers.map(number => Number(number.textContent)).filter(value => value < 1));
  assert.ok(weights.length >= 2 && Math.abs(weights.reduce((a, b) => a + b) - 1) < 0.02, String(weights));
});

test('A certificate adds up as it is printed: its weights to 1, the rest to what it says, or it would not be ≈', async t => {
  const page = await explain(t, '', { reducedMotion: 'reduce' });
  // The numbers of a formula as a reader has them.
  const printed = id => page.getByTestId(id).locator('math').evaluateAll(formulas => {
    const value = element => Number(element.textContent.replace('−', '-'));
    const [mixture, columns, scores] = formulas;
    return {
      signs: [mixture, columns, scores].map(each => [...each.querySelectorAll('mo')].map(sign => sign.textContent).filter(sign => /[=≈]/.test(sign))),
      weights: [...mixture.querySelectorAll('mn')].filter(number => !number.closest('msub')).map(value),
      columns: [...columns.querySelectorAll('mtable')].map(column => [...column.querySelectorAll('mn')].map(value)),
      scores: [...scores.querySelectorAll('mn')].filter(number => !number.closest('msub')).map(value),
      negative: [...scores.querySelectorAll('mn')].filter(number => number.textContent.startsWith('−')).map(number => number.previousElementSibling?.textContent),
    };
  });
  let seen = 0;
  const adds = async id => {
    if ((await data(page, id, 'state')) !== 'unselectable') return;
    const { signs, weights, columns, scores, negative } = await printed(id);
    assert.deepEqual(signs, [['≈'], ['≈'], ['≈', '≈']], id);
    assert.equal(weights.reduce((sum, weight) => sum + weight, 0).toFixed(3), '1.000', `${id}: ${weights}`);
    const near = (found, said) => assert.ok(Math.abs(found - said) < 0.0151, `${id}: ${found} for ${said}`); // a unit of the last digit, and the end's half
    columns[0].forEach((said, c) => near(weights.reduce((sum, weight, i) => sum + weight * columns[i + 1][c], 0), said));
    near(scores.slice(0, -1).reduce((sum, value, i) => (i % 2 ? sum + scores[i - 1] * value : sum), 0), scores.at(-1));
    assert.ok(negative.slice(0, -1).every(before => before === '('), `${id}: ${negative}`);
    const cut = await page.getByTestId(id).locator('.formula').evaluateAll(formulas => formulas.filter(each => each.scrollWidth > each.clientWidth).length);
    assert.equal(cut, 0, `${id} has a formula that is cut off`);
    ++seen;
  };
  for (let i = 0; i < 12; ++i) {
    await page.getByTestId('hero-query').press('Shift+ArrowRight');
    await frame(page);
    await adds('hero-certificate');
  }
  await goTo(page, 'hull');
  for (const length of [2, 2.4, 2.75, 3]) {
    await slide(page, 'hull-length', length);
    await frame(page);
    await adds('hull-certificate');
  }
  await goTo(page, 'projection');
  for (const way of [0, 0.25, 0.5, 0.75, 1]) {
    await slide(page, 'projection-way', way);
    await frame(page);
    await adds('projection-certificate');
  }
  assert.ok(seen >= 18, String(seen));
});

test('Projection leaves Key 2 hidden, scaling frees it on the way, and two dimensions tie up to rounding', async t => {
  const page = await explain(t, '#explain?section=projection', { reducedMotion: 'reduce' });
  await slide(page, 'projection-way', 1);
  await frame(page);
  assert.equal(await text(page, 'projection-verdict'), 'Key 2 can never be selected.');
  await goTo(page, 'scaling');
  assert.equal(await text(page, 'scaling-verdict'), 'Key 2 can never be selected.');
  await page.getByTestId('scaling-way-play').click(); // without motion: at once
  await frame(page);
  assert.equal(await text(page, 'scaling-verdict'), 'Every key can be selected.');
  await goTo(page, 'layernorm');
  assert.match(await text(page, 'two-verdict'), /tied/);
  assert.match(await page.getByTestId('two-figure').textContent(), /tied up to rounding/);
  await slide(page, 'layernorm-way', 2);
  await frame(page);
  assert.equal(await text(page, 'layernorm-verdict'), 'Every key can be selected.');
});

test('Where words speak of a query it is drawn, named, and can be turned to where Key 2 wins after scaling', async t => {
  const page = await explain(t, '#explain?section=projection', { reducedMotion: 'reduce' });
  for (const id of ['projection', 'scaling', 'layernorm']) {
    await goTo(page, id);
    assert.match(await text(page, `${id}-certificate`), /q⋅|q·/);
    assert.equal(await page.getByTestId(`${id}-space`).locator('.query-name').textContent(), 'q');
    assert.match(await text(page, `${id}-owners`), /^No direction has the colour of Key 2, also not on the far side: turn the view and look\.$/);
    const before = await text(page, `${id}-certificate`);
    await page.getByTestId(`${id}-query`).focus();
    await page.keyboard.press('Shift+ArrowRight');
    await frame(page);
    assert.notEqual(await text(page, `${id}-certificate`), before);
    if (id === 'projection') continue;
    await slide(page, `${id}-way`, id === 'layernorm' ? 2 : 1);
    await frame(page);
    assert.match(await text(page, `${id}-owners`), /^Key 2 owns directions now\. Turn the query there\.$/);
    const ranks = new Set();
    for (let row = 0; row < 9 && !ranks.has('1'); ++row) {
      for (let i = 0; i < 36 && !ranks.has('1'); ++i) {
        await page.keyboard.press('Shift+ArrowRight');
        await frame(page);
        ranks.add(await page.getByTestId(`${id}-query`).getAttribute('aria-valuenow'));
      }
      await page.keyboard.press('Shift+ArrowUp');
      await page.keyboard.press('Shift+ArrowUp');
    }
    assert.ok(ranks.has('1'), id);
  }
  assert.deepEqual(page.problems, []);
});

// Sentences that hold for whatever the figures show, said of all, none, most or never. Each needs a proof or a test; those of a
// figure's own answer (they have a test id) come from its numbers.
test('What the page says of all, of none or of most is listed with what shows it', async t => {
  const page = await explain(t, '#explain?section=audit', { reducedMotion: 'reduce' });
  for (const id of sections) await page.locator(`#explain-${id}[data-mounted]`).waitFor({ state: 'attached' });
  const paragraphs = await page.getByTestId('explain-view').locator('p:not([data-testid])').allTextContents();
  const said = JSON.parse(readFileSync(path.join(source, 'tests/browser/said.json'), 'utf8'));
  const sentences = paragraphs.flatMap(paragraph => paragraph.split(/(?<=[.!?])\s+(?=[A-Z“])/));
  const claims = sentences.filter(sentence =>
    /\b(all|every|none|no|never|always|any|most|nearly|hardly|only)\b/i.test(sentence) &&
    !/^(Draw|Type|Certificate|One command|D:|All masks)|theory behind|no query can\.$/.test(sentence));
  assert.deepEqual(claims, said.map(each => each.said));
  const theory = readFileSync(path.join(source, 'docs/theory.md'), 'utf8').toLowerCase();
  const tests = readFileSync(new URL(import.meta.url), 'utf8');
  for (const { said: sentence, shown } of said) {
    const [, heading] = shown.match(/^theory\.md#(.+)/) ?? [];
    assert.ok(heading ? theory.includes(`\n## ${heading}\n`) : tests.includes(`test('${shown}'`), `${sentence} ${shown}`);
  }
  assert.deepEqual(page.problems, []);
});

test('The heat map shows what is said beside it', async t => {
  const page = await explain(t, '#explain?section=often', { reducedMotion: 'reduce' });
  const shares = async () => {
    await page.waitForFunction(() => document.querySelectorAll('.heat .cell[data-value]').length === 64);
    return (n, d) => data(page, `often-${n}-${d}`, 'value').then(Number);
  };
  const plain = await shares();
  for (const n of [40, 50, 60]) assert.ok((await plain(n, 3)) > 0.5, `n = ${n}`);
  for (const n of [5, 10, 15, 20]) assert.ok((await plain(n, 15)) < 0.02, `n = ${n}`);
  await page.getByTestId('often-norm-rmsnorm').check({ force: true });
  const scaled = await shares();
  for (const n of [5, 20, 60]) for (const d of [3, 8, 15]) assert.equal(await scaled(n, d), 0, `${n} × ${d}`);
  await page.getByTestId('often-norm-layernorm').check({ force: true });
  const normed = await shares();
  for (const n of [5, 20, 60]) for (const d of [4, 8, 15]) assert.equal(await normed(n, d), 0, `${n} × ${d}`);
});

test('The heat map has the numbers of the program, and a cell opens its draw', async t => {
  const page = await explain(t, '#explain?section=often');
  await page.waitForFunction(() => document.querySelectorAll('.heat .cell[data-value]').length === 64);
  const told = JSON.parse(normscope('heatmap', '--n', '5,20', '--d', '3,8', '--draws', '20', '--seed', '0', '--json'));
  for (const cell of told.cells) assert.equal(Number(await data(page, `often-${cell.n}-${cell.d}`, 'value')), cell.fraction);
  await page.getByTestId('often-60-3').click();
  assert.match(await text(page, 'often-cell'), /^n = 60, d = 3, without a norm/);
  assert.equal(await page.getByTestId('often-draw').locator('circle').count(), 60);
  await page.getByTestId('often-map').press('ArrowDown');
  assert.match(await text(page, 'often-cell'), /^n = 60, d = 4/);
});

test('The embedded model hides the words that the program finds hidden', async t => {
  const page = await explain(t, '#explain?section=model');
  const sentence = await page.getByTestId('model-text').inputValue();
  const file = path.join(temporaryDirectory(t), 'text.txt');
  (await import('node:fs')).writeFileSync(file, sentence);
  for (const norm of ['center', 'layernorm']) {
    await page.getByTestId(`model-norm-${norm}`).check({ force: true });
    const told = JSON.parse(normscope('scan', path.join(source, 'web/wasm/models', norm), '--text', file, '--mask', 'full', '--space', 'model,head', '--json'));
    for (const layer of told.windows[0].layers) {
      assert.equal(await text(page, `model-set-${layer.layer + 1}-0`), String(layer.model.unselectable), `${norm}, layer ${layer.layer}`);
      for (const head of layer.heads)
        assert.equal(await text(page, `model-set-${layer.layer + 1}-${head.head + 1}`), String(head.keys.unselectable), `${norm}, layer ${layer.layer}, head ${head.head}`);
    }
  }
  await page.getByTestId('model-set-1-2').click();
  assert.match(await text(page, 'model-verdict'), /^In layer 1, head 2, \d+ of/);
  await page.getByTestId('model-text').fill('<img src=x onerror=alert(1)> naïve');
  assert.match(await text(page, 'model-sentence'), /naïve/);
  assert.equal(await page.getByTestId('model-sentence').locator('img').count(), 0);
  await page.getByTestId('model-text').fill('word '.repeat(500));
  assert.match(await text(page, 'model-problem'), /2500 bytes; the page reads up to 2000/);
  assert.deepEqual(page.problems, []);
});

test('Masks, equilibria and training answer, and the published values are marked', async t => {
  const page = await explain(t, '#explain?section=collapse', { reducedMotion: 'reduce' });
  const first = await text(page, 'collapse-verdict');
  await slide(page, 'depth-layer', 30);
  await page.getByTestId('depth-layer').dispatchEvent('change');
  assert.notEqual(await text(page, 'collapse-verdict'), first);
  await goTo(page, 'equilibria');
  assert.match(await text(page, 'equilibria-verdict'), /stay apart/);
  await slide(page, 'explain-a2', 20);
  await frame(page);
  assert.match(await text(page, 'equilibria-verdict'), /collapse/);
  await goTo(page, 'majority');
  assert.ok((await page.getByTestId('section-majority').locator('.published-mark').count()) >= 6);
  await page.getByTestId('majority-train').click();
  await page.waitForFunction(() => /Step [1-9]/.test(document.querySelector('[data-testid="majority-verdict"]').textContent));
  await page.getByTestId('majority-train').click();
  await goTo(page, 'audit');
  execFileSync('python3', ['-B', path.join(source, 'scripts/page-audit'), '--check']); // what docs/reproduction.json says
  const audit = JSON.parse(readFileSync(path.join(source, 'web/src/explain/audit.json'), 'utf8'));
  assert.equal(await page.getByTestId('audit-table').locator('tbody tr').count(), audit.claims.length);
  assert.match(await page.getByTestId('section-audit').textContent(), new RegExp(audit.commit));
  assert.deepEqual(page.problems, []);
});

test('Training leaves the axis of the loss as it is, and the sentence names norms as the legend does', async t => {
  const page = await explain(t, '#explain?section=majority', { reducedMotion: 'reduce' });
  const section = page.getByTestId('section-majority');
  const axis = () => section.locator('.chart').first().evaluate(chart => [...chart.querySelectorAll('text')].filter(label => label.getAttribute('text-anchor') === 'end').map(label => [label.textContent, label.getAttribute('y') ?? label.getAttribute('transform')].join()));
  const before = await axis();
  assert.ok(before.some(label => label.startsWith('6')), before.join('; '));
  for (const seed of [11, 3, 40]) {
    await slide(page, 'majority-explain-seed', seed);
    await page.getByTestId('majority-train').click();
    await page.waitForFunction(() => /Step [1-9]/.test(document.querySelector('[data-testid="majority-verdict"]').textContent));
    await page.getByTestId('majority-train').click();
    assert.deepEqual(await axis(), before, `seed ${seed}`);
  }
  const entries = (await section.locator('.entry').allTextContents()).map(entry => entry.trim());
  assert.ok(entries.length >= 3);
  const said = await text(page, 'majority-verdict');
  for (const name of new Set(entries)) assert.ok(said.includes(`${name}: loss`), `${name} in ${said}`);
});

test('Every figure says what its marks mean', async t => {
  const page = await explain(t, '', { reducedMotion: 'reduce' });
  assert.match(await text(page, 'hero-marks'), /A dashed ring: one that cannot\. Dotted lines: to the keys of which Key 2 is a mixture\. Grey/);
  await page.getByTestId('hero-layernorm').click();
  await frame(page);
  assert.match(await text(page, 'hero-marks'), /^A disc: a key that can be selected\. A small ring: where a key was before\. Grey lines/);
  await goTo(page, 'often');
  assert.match(await text(page, 'often-marks'), /per cent of the keys/);
  await page.getByTestId('often-reading-any').check({ force: true });
  assert.match(await text(page, 'often-marks'), /per cent of 20 draws/);
  await goTo(page, 'collapse');
  assert.match(await text(page, 'collapse-marks'), /square one of 8 to 16/);
  assert.ok((await page.getByTestId('section-collapse').locator('.two-figures rect').count()) >= 9); // and squares there are
  await goTo(page, 'equilibria');
  for (const [id, words] of [['circle', 'after 60 layers; further in is later'], ['map', 'the end']]) {
    const figure = page.getByTestId(`equilibria-${id}-room`).locator('svg');
    const label = figure.getByText(words, { exact: true });
    const [inside, around] = [await label.boundingBox(), await figure.boundingBox()];
    assert.ok(inside.x + inside.width <= around.x + around.width && inside.y + inside.height <= around.y + around.height + 1, words);
  }
});

test('With reduced motion a change of norm is there at once, else on the way', async t => {
  const place = page => page.getByTestId('hero-space').locator('.marker[data-key="3"]').getAttribute('transform');
  const still = await explain(t, '', { reducedMotion: 'reduce' });
  await still.getByTestId('hero-layernorm').click();
  const end = await place(still);
  await frame(still);
  assert.equal(await place(still), end);
  const moving = await explain(t);
  await moving.getByTestId('hero-layernorm').click();
  assert.notEqual(await place(moving), end);
  await moving.waitForFunction(to => document.querySelector('[data-testid="hero-space"] .marker[data-key="3"]').getAttribute('transform') === to, end);
});

for (const [colorScheme, width] of [['light', 1280], ['dark', 390], ['light', 1920]]) {
  test(`No section is wider than ${width} px or breaks a rule of axe, ${colorScheme}`, async t => {
    const page = await explain(t, '#explain?section=audit', { colorScheme, width, height: 850, reducedMotion: 'reduce' });
    for (const id of sections) await page.locator(`#explain-${id}[data-mounted]`).waitFor({ state: 'attached' });
    assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= width);
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    assert.deepEqual(violations.map(({ id, nodes }) => [id, nodes.slice(0, 3).map(node => node.html.slice(0, 120))]), []);
    assert.deepEqual(page.problems, []);
  });
}

test('On a small screen slider, figure and verdict share it', async t => {
  const page = await explain(t, '#explain?section=scaling', { width: 390, height: 844, reducedMotion: 'reduce' });
  for (const id of ['projection', 'scaling', 'layernorm']) {
    const ends = await page.evaluate(name => {
      const of = selector => document.querySelector(`[data-testid="${selector}"]`).getBoundingClientRect();
      return [of(`${name}-space`).top, of(`${name}-way`).bottom, of(`${name}-verdict`).bottom];
    }, id);
    assert.ok(Math.max(...ends) - Math.min(...ends) < 844, `${id}: ${ends}`);
  }
});

test('Dragging the query draws every frame anew; the median frame is told', async t => {
  const page = await explain(t);
  const dot = await page.getByTestId('hero-direction').boundingBox();
  await timeFrames(page);
  const before = await text(page, 'challenge-rank');
  await page.mouse.move(dot.x + dot.width / 2, dot.y + dot.height / 2);
  await page.mouse.down();
  for (let i = 0; i < 60; ++i) await page.mouse.move(dot.x + 40 * Math.cos(i / 8), dot.y + 40 * Math.sin(i / 8));
  await page.mouse.up();
  await frame(page);
  t.diagnostic(`median frame while dragging: ${(await medianFrame(page)).toFixed(1)} ms`);
  assert.notEqual(await data(page, 'challenge-rank', 'rank'), undefined);
  assert.ok(before.length > 0);
});

test('Printed, every section is on paper, light, with the cells of hidden words and the bars, and without what asks for a hand', async t => {
  const page = await explain(t, '', { colorScheme: 'dark', width: 718, height: 1000, reducedMotion: 'reduce' }); // A4 between its margins
  await page.evaluate(() => (document.documentElement.dataset.theme = 'dark'));
  const shade = () => page.locator('.winners').first().evaluate(canvas => [...canvas.getContext('2d').getImageData(128, 128, 1, 1).data].join());
  const onScreen = await shade();
  await page.evaluate(() => dispatchEvent(new Event('beforeprint')));
  await page.emulateMedia({ media: 'print' });
  for (const id of sections) assert.ok((await page.locator(`#explain-${id}[data-mounted] .figure > *`).count()) > 0, id);
  assert.deepEqual(await page.evaluate(() => ['backgroundColor', 'color'].map(name => getComputedStyle(document.body)[name])), ['rgb(255, 255, 255)', 'rgb(28, 30, 33)']);
  assert.notEqual(await shade(), onScreen); // the sphere of directions has the colours of paper too
  const cells = page.locator('.set-grid button');
  assert.ok((await cells.count()) > 4);
  for (const cell of await cells.all()) assert.ok(await cell.isVisible());
  for (const hidden of ['.challenge', '.choice-title', '.player', '.scrubber', '.control', '.to-lab'])
    for (const each of await page.locator(`.explain ${hidden}`).all()) assert.equal(await each.isVisible(), false, hidden);
  assert.equal(await page.locator('.bar-fill').first().evaluate(fill => getComputedStyle(fill).printColorAdjust), 'exact');
  // A row of the audit is a row, not a card of five lines and more.
  assert.equal(await page.getByTestId('audit-table').locator('tbody tr').first().evaluate(row => getComputedStyle(row).display), 'table-row');
  const height = await page.getByTestId('audit-table').evaluate(table => table.getBoundingClientRect().height);
  assert.ok(height < 4500, `the audit is ${height} px long`);
  const pdf = await page.pdf();
  const pages = (pdf.toString('latin1').match(/\/Type ?\/Page\b/g) ?? []).length;
  assert.ok(pages >= 6 && pages <= 16, `${pages} pages`);
  await page.emulateMedia({ media: 'screen' });
  await page.evaluate(() => dispatchEvent(new Event('afterprint')));
  assert.equal(await shade(), onScreen);
});
