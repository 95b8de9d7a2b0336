if (process.argv.length > 2) {
  console.error(
    `npm start takes no options, so it does not know ${process.argv.slice(2).join(' ')}. Settings are environment variables, such as PORT and DATA_DIR: see "Variables" in docs/running.md.`,
  );
  process.exit(64);
}
process.argv.splice(2, 0, 'dist/apps/launcher/src/main.js');
await import('./run.mjs');
