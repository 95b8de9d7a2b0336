process.argv.splice(2, 0, 'dist/apps/launcher/src/main.js');
await import('./run.mjs');
