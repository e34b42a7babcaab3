import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { defineConfig, type Plugin } from 'vite';
import { render } from './site/markdown.mjs';

// Browsers refuse modules from file://. One classic script at the end of the body opens from a disk as well, and lets
// the frame of the page be painted first.
function classicScript(): Plugin {
  return {
    name: 'classic-script',
    enforce: 'post',
    transformIndexHtml: html => {
      const scripts: string[] = [];
      const rest = html.replace(/\s*<script type="module"[^>]*src="([^"]+)"[^>]*><\/script>/g, (_, source) => {
        scripts.push(`<script defer src="${source}"></script>`);
        return '';
      });
      return rest.replace(/ crossorigin/g, '').replace('</body>', `  ${scripts.join('\n    ')}\n  </body>`);
    },
  };
}

// The WebAssembly stands in its module as text. Packed it is a third of that; core.ts unpacks it.
function packedCore(): Plugin {
  return {
    name: 'packed-core',
    transform(code, id) {
      if (!id.endsWith('/normscope.mjs')) return null;
      let packed = '';
      const rest = code.replace(/data:application\/octet-stream;base64,([A-Za-z0-9+/=]+)/, (_, text: string) => {
        packed = gzipSync(Buffer.from(text, 'base64'), { level: 9 }).toString('base64');
        return '';
      });
      if (packed === '') throw new Error(`${id} holds no WebAssembly; build it again with scripts/web.`);
      return { code: `${rest}\nexport const packed = '${packed}';\n`, map: null };
    },
  };
}

// The theory as a page beside this one, in the dress of the documentation.
function theory(): Plugin {
  return {
    name: 'theory',
    generateBundle() {
      const read = (file: string) => readFileSync(new URL(file, import.meta.url), 'utf8');
      const { html } = render(read('../docs/theory.md'), (target: string) => {
        if (!target.startsWith('#')) throw new Error(`theory.md stands alone here; it links to '${target}'.`);
        return target;
      });
      const colours = read('./src/style.css').split('\n* {')[0];
      this.emitFile({ type: 'asset', fileName: 'theory.css', source: `${colours}\n${read('./site/site.css')}` });
      this.emitFile({
        type: 'asset',
        fileName: 'theory.html',
        source: `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Theory · Normscope</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="./theory.css">
<script src="./theme.js"></script>
</head>
<body>
<header class="top"><a class="brand" href="./index.html">Normscope</a></header>
<div class="alone"><main id="content">
${html}</main></div>
</body>
</html>
`,
      });
    },
  };
}

export default defineConfig({
  base: './',
  publicDir: 'public',
  plugins: [packedCore(), classicScript(), theory()],
  build: {
    outDir: process.env.NORMSCOPE_WEB_FOLDER ?? '../build/web',
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: false,
    cssCodeSplit: false, // a style sheet of its own, there before the script
    chunkSizeWarningLimit: 3000,
    rollupOptions: { output: { format: 'iife', inlineDynamicImports: true } },
  },
  server: { fs: { allow: ['..'] } },
});
