import { defineConfig, type Plugin } from 'vite';

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

export default defineConfig({
  base: './',
  publicDir: 'public',
  plugins: [classicScript()],
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
