// The report of `paper` as a page of cards: the score, filters, addresses, contents, telephone, paper, keyboard.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { tmpdir } from 'node:os';
import { normscope, open, source } from './harness.mjs';

const axe = readFileSync(createRequire(path.join(source, 'web/package.json')).resolve('axe-core/axe.min.js'), 'utf8');
let directory, file, results;
before(() => {
  directory = mkdtempSync(path.join(tmpdir(), 'normscope-browser-'));
  const out = path.join(directory, 'paper');
  normscope('paper', '--only', 'fig1ab,fig2,fig3,wu1', '--seeds', '2', '--steps', '20', '--quiet', '--out', out);
  file = path.join(out, 'report.html');
  results = JSON.parse(readFileSync(path.join(out, 'results.json'), 'utf8'));
});
after(() => rmSync(directory, { recursive: true, force: true }));

const place = (page, id) => page.evaluate(wanted => {
  const element = document.getElementById(wanted);
  return element.getBoundingClientRect().top - parseFloat(getComputedStyle(element).scrollMarginTop || 0);
}, id);
const settled = page => page.evaluate(() => new Promise(done => {
  let last = -1, still = 0;
  const look = () => {
    still = scrollY === last ? still + 1 : 0;
    last = scrollY;
    if (still > 12) done();
    else requestAnimationFrame(look);
  };
  look();
}));
// At the top of the screen, or as far down as the page goes.
async function landed(page, id) {
  await settled(page);
  const top = await place(page, id);
  const end = await page.evaluate(() => document.documentElement.scrollHeight - innerHeight - scrollY);
  assert.ok(Math.abs(top) < 2 || (top > 0 && end < 2), `${id} is ${top} px away`);
}

test('the first screen counts the verdicts of the results, by letter, word and number', async t => {
  const page = await open(t, file);
  const words = { yes: 'holds', conditionally: 'only if', no: 'does not', open: 'open', answered: 'answered' };
  const tiles = await page.locator('.tile').evaluateAll(all => all.map(tile => ({
    id: tile.hash.slice(1), letter: tile.querySelector('.letter').textContent, word: tile.querySelector('.word').textContent,
  })));
  assert.equal(tiles.length, results.claims.length);
  for (const claim of results.claims) {
    const tile = tiles.find(each => each.id === 'claim-' + claim.id);
    assert.equal(tile.word, words[claim.holds]);
    assert.match(tile.letter, /^[HINOA]$/);
  }
  for (const [holds, word] of Object.entries(words)) {
    const count = results.claims.filter(claim => claim.holds === holds).length;
    const shown = page.locator('.score .counts li', { hasText: new RegExp(`^.${word}`) });
    assert.equal(await shown.count(), count ? 1 : 0);
    if (count) assert.match(await shown.textContent(), new RegExp(`${count}$`));
  }
  assert.ok((await page.locator('.tile').last().boundingBox()).y < 900, 'the tiles fit the first screen');
  assert.equal(await page.locator('.caveats').getAttribute('open'), null);
  assert.deepEqual(page.problems, []);
  assert.deepEqual(page.requests, []);
});

test('a card says what results.json says of its claim, with every interval, and has its figure', async t => {
  const page = await open(t, file);
  for (const claim of results.claims) {
    const card = page.locator(`[id="claim-${claim.id}"]`), text = await card.textContent();
    for (const field of ['where', 'claim', 'published', 'measured', 'verdict', 'why', 'missing', 'more'])
      assert.ok(text.includes(claim[field].trim()), `${claim.id}: ${field}`);
    const drawn = claim.comparisons.filter(each => each.value !== null || each.low !== null || each.high !== null);
    assert.equal(await card.locator('.reading').count(), Math.min(40, drawn.length));
    assert.ok(await card.locator('figure, .see').count() > 0, `${claim.id} has no figure`);
  }
  assert.deepEqual(JSON.parse(await page.locator('#data').textContent()), results);
});

// As words of a field, or as a number of one, rounded to the digits that are shown; shares as per cent, too.
test('no number stands in a card that its claim in results.json does not have', async t => {
  const page = await open(t, file);
  const inText = text => text.replaceAll('−', '-').match(/\d+(?:\.\d+)?(?:e[-+]?\d+)?/g) ?? [];
  const inFields = value => typeof value === 'number' ? [value, 100 * value]
    : value && typeof value === 'object' ? Object.values(value).flatMap(inFields) : [];
  const rounds = (number, shown) =>
    Math.abs(Math.abs(number) - shown) <= 0.5001 * 10 ** (Math.floor(Math.log10(Math.abs(number))) - 2);
  let seen = 0;
  for (const claim of results.claims) {
    const text = await page.locator(`[id="claim-${claim.id}"]`).evaluate(card => {
      const words = card.cloneNode(true);
      for (const other of words.querySelectorAll('figure, .see, .letter, style, title')) other.remove();
      for (const each of words.querySelectorAll('*')) each.after(' ');
      return words.textContent;
    });
    const words = new Set(inText(JSON.stringify(claim))), numbers = inFields(claim);
    const folded = claim.comparisons.filter(each => each.value !== null || each.low !== null || each.high !== null).length - 4;
    for (const shown of inText(text)) {
      const known = words.has(shown) || numbers.some(number => rounds(number, Number(shown))) || Number(shown) === folded;
      assert.ok(known, `${claim.id}: ${shown} is not in its results, in: ${text}`);
      ++seen;
    }
    for (const comparison of claim.comparisons) assert.notEqual(comparison.what, '', claim.id);
  }
  assert.ok(seen > 10 * results.claims.length);
});

test('filters by paper, verdict and topic restrict each other, and a link brings a card back', async t => {
  const page = await open(t, file), cards = page.locator('.cards > .card:visible'), all = results.claims.length;
  assert.equal(await cards.count(), all);
  const press = (kind, value) => page.locator(`[data-filter="${kind}"] button[value="${value}"]`).click();
  await press('paper', 'wu2024');
  const wu = results.claims.filter(claim => claim.paper === 'wu2024');
  assert.equal(await cards.count(), wu.length);
  assert.equal(await page.locator('output').textContent(), `${wu.length} of ${all} claims`);
  assert.equal(await page.locator('.contents [data-card]:visible').count(), wu.length);
  await press('topic', wu[0].topic);
  assert.equal(await cards.count(), wu.filter(claim => claim.topic === wu[0].topic).length);
  const away = results.claims.find(claim => claim.paper !== 'wu2024');
  await page.locator(`.tile[href="#claim-${away.id}"]`).click();
  await landed(page, 'claim-' + away.id);
  assert.equal(await cards.count(), all);
  await press('verdict', 'open');
  assert.equal(await cards.count(), results.claims.filter(claim => claim.holds === 'open').length);
  await page.getByRole('button', { name: 'Show all' }).click();
  assert.equal(await cards.count(), all);
  assert.deepEqual(page.problems, []);
});

test('contents, tiles and addresses land where they point, on a desk and on a telephone', async t => {
  const ids = results.claims.map(claim => 'claim-' + claim.id);
  for (const width of [1280, 390]) {
    const page = await open(t, file, { width });
    for (const id of [ids.at(-1), ids[1]]) {
      if (width < 1200) await page.locator('.contents > button').click();
      await page.locator(`.contents a[href="#${id}"]`).click();
      await landed(page, id);
    }
    const other = await open(t, 'file://' + file + '#' + ids.at(-2), { width });
    await landed(other, ids.at(-2));
    const figures = await open(t, file, { width });
    await figures.evaluate(() => { location.hash = 'confound-scale'; });
    await landed(figures, 'confound-scale');
  }
});

test('contents links land in reports of runs, too', async t => {
  const runs = [];
  for (const [name, ...more] of [['masks', 'mask', 'full', 'causal', '--n', '8'],
    ['collapse', 'collapse', '--tokens', '8', '--dim', '8', '--layers', '4', '--samples', '3', '--mask', 'full', 'causal'],
    ['heat', 'heatmap', '--n', '3:8', '--d', '2:4', '--draws', '2']]) {
    runs.push(path.join(directory, name));
    normscope(...more, '--quiet', '--out', runs.at(-1));
  }
  const out = path.join(directory, 'runs.html');
  normscope('report', ...runs, ...runs.map(run => run + '/../paper'), '--quiet', '--out', out);
  const page = await open(t, out), links = page.locator('.contents a');
  for (const nth of [-1, 1]) {
    const link = links.nth(nth), id = (await link.getAttribute('href')).slice(1);
    await link.click();
    await landed(page, id);
  }
  assert.ok(await page.locator('section.run .card').count() >= results.claims.length);
  assert.deepEqual(page.problems, []);
});

test('confounds stand side by side, each with two figures and the claims it bears on', async t => {
  const page = await open(t, file, { width: 1400 }), pair = page.locator('#confound-scale .pair');
  assert.equal(await pair.locator('figure').count(), 2);
  const boxes = await Promise.all([0, 1].map(i => pair.locator('figure').nth(i).boundingBox()));
  assert.ok(Math.abs(boxes[0].y - boxes[1].y) < 2 && boxes[1].x > boxes[0].x + boxes[0].width - 2);
  const touched = results.claims.filter(claim => claim.confounds.includes('scale'));
  assert.ok(touched.length > 0);
  assert.deepEqual(await page.locator('#confound-scale .touched a').evaluateAll(all => all.map(a => a.hash.slice(1))),
    touched.map(claim => 'claim-' + claim.id));
});

test('the keyboard reaches the caveats, the filters, the cards and the folded contents', async t => {
  const page = await open(t, file, { width: 390 });
  await page.locator('.caveats summary').focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.caveats').evaluate(details => details.open), true);
  const filter = page.locator('[data-filter="verdict"] button').first();
  await filter.focus();
  await page.keyboard.press('Space');
  assert.equal(await filter.getAttribute('aria-pressed'), 'true');
  await page.keyboard.press('Space');
  await page.locator('.tile').last().focus();
  const id = (await page.locator('.tile').last().getAttribute('href')).slice(1);
  await page.keyboard.press('Enter');
  await landed(page, id);
  const fold = page.locator('.contents > button');
  await fold.focus();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.contents > ul').isVisible(), true);
  await page.keyboard.press('Escape');
  assert.equal(await page.locator('.contents > ul').isVisible(), false);
  assert.equal(await fold.evaluate(button => button === document.activeElement), true);
});

for (const [width, colorScheme] of [[390, 'dark'], [1280, 'light'], [1920, 'dark']]) {
  test(`at ${width} px, ${colorScheme}, nothing is too wide and axe finds nothing serious`, async t => {
    const page = await open(t, file, { width, colorScheme });
    assert.equal(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), true);
    // The page's policy lets nothing in from outside, so the rules are handed over by the driver.
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    const serious = violations.filter(each => ['serious', 'critical'].includes(each.impact));
    assert.deepEqual(serious.map(each => `${each.id}: ${each.nodes.length} × ${each.nodes[0].html.slice(0, 160)}`), []);
    const paint = await page.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0]?.startTime);
    t.diagnostic(`${(statSync(file).size / 1e6).toFixed(2)} MB, first paint after ${paint?.toFixed(0)} ms`);
    assert.ok(statSync(file).size < 6e6);
  });
}

test('on paper there are cards and pictures, and nothing to press', async t => {
  const page = await open(t, file, { colorScheme: 'dark' });
  await page.emulateMedia({ media: 'print' });
  assert.equal(await page.locator('button:visible').count(), 0);
  assert.equal(await page.locator('.contents').isVisible(), false);
  assert.equal(await page.locator('.card:visible').count(), results.claims.length);
  assert.equal(await page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
  assert.ok((await page.pdf()).length > 10_000);
});
