import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { defineConfig } from 'vite';
import { docsPages } from './docs-pages.mjs';

/**
 * Puts `head.js` at the head of each page. A module would run only after the page is drawn, and the policy forbids an
 * inline script.
 */
const theme = () => ({
  name: 'theme',
  buildStart() {
    const source = readFileSync(join(import.meta.dirname, 'head.js'), 'utf8');
    this.emitFile({ type: 'asset', name: 'head.js', source });
  },
  transformIndexHtml: {
    order: 'post',
    handler(_html, { bundle, path }) {
      const name = Object.keys(bundle).find((file) => file.startsWith('assets/head-'));
      const src = `${'../'.repeat(path.split('/').length - 2) || './'}${name}`;
      return [{ tag: 'script', attrs: { src }, injectTo: 'head-prepend' }];
    },
  },
});

export default defineConfig({
  // Addresses relative to the page, so that it also works below a path of a proxy.
  base: './',
  plugins: [docsPages(), theme()],
  build: {
    target: 'es2022',
    // No script is loaded later, and a `data:` asset would need a wider policy.
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
    // The index of the documentation, which only its search loads.
    chunkSizeWarningLimit: 1000,
    // It warns of slow plugins when the machine is busy.
    rollupOptions: { checks: { pluginTimings: false } },
  },
});
