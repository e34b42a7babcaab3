// The script of reports: one classic script, which the C++ build embeds into every report. It is committed, so that a
// build of the program needs no npm; tests/browser/bundle_test.mjs says when it is older than its sources.
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

const notice = `/* Made of web/report and web/src/kit by "npm --prefix web run report"; edit these.
Parts are of d3-scale, d3-shape and what they use. Copyright 2010-2023 Mike Bostock. Permission to use, copy, modify, and/or
distribute this software for any purpose with or without fee is hereby granted, provided that the above copyright notice and
this permission notice appear in all copies. The software is provided "as is" and the author disclaims all warranties with
regard to this software including all implied warranties of merchantability and fitness. In no event shall the author be
liable for any special, direct, indirect, or consequential damages or any damages whatsoever resulting from loss of use, data
or profits, whether in an action of contract, negligence or other tortious action, arising out of or in connection with the
use or performance of this software. */
`;

function withNotice(): Plugin {
  return {
    name: 'with-notice',
    enforce: 'post',
    generateBundle(_, bundle) {
      for (const piece of Object.values(bundle)) if (piece.type === 'chunk') piece.code = notice + piece.code;
    },
  };
}

export default defineConfig({
  publicDir: false,
  plugins: [withNotice()],
  build: {
    outDir: process.env.NORMSCOPE_REPORT_FOLDER ?? '../src/report',
    emptyOutDir: false,
    target: 'es2022',
    sourcemap: false,
    modulePreload: false,
    rollupOptions: {
      input: fileURLToPath(new URL('report/main.ts', import.meta.url)),
      output: { format: 'iife', entryFileNames: 'page.js' },
    },
  },
});
