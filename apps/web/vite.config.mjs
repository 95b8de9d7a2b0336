import { defineConfig } from 'vite';
import { docsPages } from './docs-pages.mjs';

export default defineConfig({
  // Addresses relative to the page, so that it also works below a path of a proxy.
  base: './',
  plugins: [docsPages()],
  build: {
    target: 'es2022',
    // No script of the page is loaded later, and a `data:` asset would need a wider policy.
    modulePreload: false,
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
});
