// What browser tests share: Debian's Chromium, driven by playwright-core, without any network of its own.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

export const source = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const program = process.env.NORMSCOPE_PROGRAM ?? path.join(source, 'build/normscope');
export const webFolder = process.env.NORMSCOPE_WEB_FOLDER ?? path.join(source, 'build/web');

const require = createRequire(path.join(source, 'web/package.json'));
const { chromium } = require('playwright-core');

// Runs the program; the output is text.
export function normscope(...args) {
  return execFileSync(program, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
}

// The one script that web/'s bundler makes with these settings, as text.
export async function bundled(settings) {
  const vite = path.join(path.dirname(require.resolve('vite/package.json')), 'dist/node/index.js');
  const { build } = await import(pathToFileURL(vite));
  const results = [await build({ root: path.join(source, 'web'), logLevel: 'silent', ...settings, build: { ...settings.build, write: false } })].flat();
  return results[0].output[0].code;
}

// A directory that is gone after the test.
export function temporaryDirectory(t) {
  const directory = mkdtempSync(path.join(tmpdir(), 'normscope-browser-'));
  t.after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

// One browser for the pages of a file; it ends when none has been open for a second, which lets the file end.
let browser, openPages = 0, idle;
async function context(t, settings) {
  clearTimeout(idle);
  ++openPages;
  browser ??= chromium.launch({
    executablePath: '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
      '--disable-component-update', '--disable-sync'],
  });
  const made = await (await browser).newContext(settings);
  t.after(async () => {
    await made.close();
    if (--openPages > 0) return;
    idle = setTimeout(async () => {
      const ending = browser;
      browser = undefined;
      await (await ending).close();
    }, 1000);
  });
  return made;
}

// A page at a file path or address, closed after the test. page.problems holds console errors, exceptions and
// requests that failed; page.requests the addresses asked for, beside the first.
export async function open(t, where, { colorScheme = 'light', width = 1280, height = 900, ...settings } = {}) {
  const page = await (await context(t, { colorScheme, viewport: { width, height }, ...settings })).newPage();
  const address = /^[a-z]+:/.test(where) ? where : 'file://' + path.resolve(where);
  page.problems = [];
  page.requests = [];
  page.on('console', message => message.type() === 'error' && page.problems.push(message.text()));
  page.on('pageerror', error => page.problems.push(String(error)));
  page.on('requestfailed', request => page.problems.push('request failed: ' + request.url()));
  page.on('request', request => request.url().split('#')[0] !== address.split('#')[0] &&
    !/^(blob|data):/.test(request.url()) && page.requests.push(request.url()));
  await page.goto(address);
  return page;
}

// From now on every frame of the page is timed; the median of those since, in ms.
export async function timeFrames(page) {
  await page.evaluate(() => {
    window.frames = [];
    let last = performance.now();
    const next = now => {
      window.frames.push(now - last);
      last = now;
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  });
}
export const medianFrame = page =>
  page.evaluate(() => window.frames.sort((a, b) => a - b)[Math.floor(window.frames.length / 2)]);
