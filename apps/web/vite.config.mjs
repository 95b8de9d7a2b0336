import { join } from 'node:path';
import { defineConfig } from 'vite';

export default defineConfig({
  // Addresses relative to the page, so that it also works below a path of a proxy.
  base: './',
  resolve: {
    // The typed client takes its random ids from Node, and the page from the browser.
    alias: { 'node:crypto': join(import.meta.dirname, 'src', 'service', 'random-id.ts') },
  },
  build: {
    target: 'es2022',
    // No script of the page is loaded later, and a `data:` asset would need a wider policy.
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
