// The script of reports that is committed is the one that its sources make.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { bundled, source } from './harness.mjs';

test('src/report/page.js is made of web/report and web/src/kit', async () => {
  const committed = readFileSync(path.join(source, 'src/report/page.js'), 'utf8');
  const made = await bundled({ configFile: path.join(source, 'web/vite.report.config.ts') });
  assert.ok(committed === made, 'src/report/page.js is older than its sources in web/report and web/src/kit: ' +
    'run "npm --prefix web run report", build again, and commit it.');
  // What would end the element, or the constant, that holds it.
  assert.doesNotMatch(made, /<\/script|<!--|\)embedded"/);
  assert.doesNotMatch(made, /sourceMappingURL|https?:\/\/(?!www\.w3\.org\/)/);
  assert.ok(made.length < 80_000, 'every report carries the script: it should stay small');
});
