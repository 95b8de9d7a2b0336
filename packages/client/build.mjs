import { cpSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, relative } from 'node:path';

/**
 * Compiles the client twice: CommonJS to `dist/cjs`, ES modules to `dist/esm`, each with its types, which are the same.
 * It compiles to another folder and moves the files, so that a program that runs during the build reads no missing
 * file, and a failed build leaves the last one.
 */
const ts = createRequire(import.meta.url)('typescript');
const dist = join(import.meta.dirname, 'dist');
const cache = join(import.meta.dirname, '.cache');
for (const folder of [dist, cache]) mkdirSync(folder, { recursive: true });
const fresh = mkdtempSync(join(cache, 'build-'));

/** Every file below a folder, as paths relative to it. */
const filesOf = (folder) =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => relative(folder, join(entry.parentPath, entry.name)));

/** Checks the sources, and compiles them to CommonJS. @returns their names, and the options of the compiler. */
function compile() {
  const host = { ...ts.sys, onUnRecoverableConfigFileDiagnostic: (diagnostic) => refuse([diagnostic]) };
  const given = { outDir: join(fresh, 'cjs') };
  const { fileNames, options, errors } = ts.getParsedCommandLineOfConfigFile(
    join(import.meta.dirname, 'tsconfig.json'),
    given,
    host,
  );
  const program = ts.createProgram(fileNames, options);
  const { diagnostics } = program.emit();
  refuse([...errors, ...ts.getPreEmitDiagnostics(program), ...diagnostics]);
  return { fileNames, options };
}

function refuse(diagnostics) {
  if (diagnostics.length === 0) return;
  throw new Error(ts.formatDiagnostics(diagnostics, ts.createCompilerHost({})));
}

/** Compiles one source that is checked already to an ES module. */
function writeModule(file, options) {
  const compilerOptions = { ...options, module: ts.ModuleKind.ESNext };
  const { outputText } = ts.transpileModule(readFileSync(file, 'utf8'), { compilerOptions, fileName: file });
  writeFileSync(join(fresh, 'esm', basename(file).replace(/ts$/, 'js')), outputText);
}

try {
  const { fileNames, options } = compile();
  cpSync(join(fresh, 'cjs'), join(fresh, 'esm'), { recursive: true });
  for (const file of fileNames) writeModule(file, options);
  writeFileSync(join(fresh, 'esm', 'package.json'), `${JSON.stringify({ type: 'module' })}\n`);
  const names = filesOf(fresh);
  for (const name of names) {
    mkdirSync(dirname(join(dist, name)), { recursive: true });
    renameSync(join(fresh, name), join(dist, name));
  }
  for (const name of filesOf(dist)) if (!names.includes(name)) rmSync(join(dist, name), { force: true });
} catch (error) {
  console.error(error.message);
  process.exitCode = 1;
} finally {
  rmSync(fresh, { recursive: true, force: true });
}
