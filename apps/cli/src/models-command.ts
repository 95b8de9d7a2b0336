import { isNativeError } from 'node:util/types';
import {
  type AddedKind,
  demoModel,
  formatBytes,
  type InstalledModel,
  ModelStore,
  ModelStoreError,
  shortHash,
  withFaults,
} from '@app/model-store';
import { ProgressLine, type ProgressOutput } from './progress-line';
import { ConfigError, loadConfig } from '@app/config';
import { inOneLine } from '@app/diffusion/files';
import { Command, CommanderError } from 'commander';
import {
  defaultOptions,
  defined,
  kindOption,
  defaultsOf,
  type GivenDefaults,
  knownModels,
  partOptions,
  precisionOption,
  type precisions,
} from './add-options';
import { modelFacts, modelProblem, notesOn, tryModel, verdict } from './model-report';
import { textTable } from './text-table';

/** Inputs and outputs of the command. */
export interface CommandContext {
  env: Readonly<Record<string, string | undefined>>;
  stdout: { write(text: string): unknown };
  stderr: ProgressOutput;
  /** Asks a yes-or-no question; absent where nobody can answer. */
  ask?: (question: string) => Promise<boolean>;
  /** What was downloaded until it aborts is kept. */
  signal?: AbortSignal;
}

/** Exit codes: success; failure, or a damaged model; usage error; interrupted. */
export const exitCodes = { ok: 0, failed: 1, usage: 2, interrupted: 130 } as const;

/** Runs `models list | add | verify | remove` and returns the exit code. Errors are one line on stderr. */
export async function runModels(args: readonly string[], context: CommandContext): Promise<number> {
  let exitCode: number = exitCodes.ok;
  try {
    await program(context, (code) => (exitCode = code)).parseAsync(args, { from: 'user' });
    return exitCode;
  } catch (error) {
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.ok : exitCodes.usage;
    context.stderr.write(`${isNativeError(error) ? error.message : String(error)}\n`);
    if (error instanceof ConfigError) return error.exitCode;
    const code = error instanceof ModelStoreError ? error.code : undefined;
    if (code === 'Aborted') return exitCodes.interrupted;
    return code === 'InvalidModelName' || code === 'InvalidSource' || code === 'InvalidDefaults'
      ? exitCodes.usage
      : exitCodes.failed;
  }
}

const bundledQuestion = `${demoModel} comes with Darkroom and stands in for models that are not installed. Remove it?`;

interface Session {
  modelsDir: string;
  store: ModelStore;
  /** Whether DEVICE names GPUs alone, where weights in int8 are widened again. */
  isForGpus: boolean;
  /** Base of relative paths: npm runs a script in the project's folder, wherever it was called. */
  calledFrom: string;
  progress: ProgressLine;
  watched: { onProgress: ProgressLine['report']; signal?: AbortSignal };
  print: (line: string) => unknown;
  warn: (line: string) => unknown;
  exitWith: (code: number) => void;
  ask: CommandContext['ask'];
}

function program({ env, stdout, stderr, signal, ask }: CommandContext, exitWith: (code: number) => void): Command {
  const { modelsDir, devices, hubEndpoint: endpoint, hubToken: token } = loadConfig(env);
  const isForGpus = devices !== 'auto' && !devices.includes('cpu');
  const store = new ModelStore(modelsDir, { endpoint, ...(token && { token }) });
  const print = (line: string): unknown => stdout.write(`${line}\n`);
  const warn = (line: string): unknown => stderr.write(`${line}\n`);
  const progress = new ProgressLine(stderr);
  const watched = { onProgress: progress.report, ...(signal && { signal }) };
  const models = new Command('models')
    .description('The models that pictures are drawn with, in the folder MODELS_DIR.')
    .configureOutput({ writeOut: (text) => stdout.write(text), writeErr: (text) => stderr.write(text) })
    .exitOverride();
  const calledFrom = env.INIT_CWD ?? '';
  const session = { modelsDir, store, isForGpus, calledFrom, progress, watched, print, warn, exitWith, ask };
  for (const define of [defineList, defineAdd, defineVerify, defineRemove]) define(models, session);
  return models;
}

/** Says on stderr which folders are passed over and, without `json`, that there is no model. */
async function installedModels({ modelsDir, store, print, warn }: Session, json?: true): Promise<InstalledModel[]> {
  const installed = await store.list();
  if (installed.length === 0 && !json)
    print(`No models are installed in ${modelsDir}. If they are elsewhere, set MODELS_DIR.`);
  const passedOver = await store.passedOver();
  if (passedOver !== undefined) warn(passedOver);
  return installed;
}

function defineList(models: Command, session: Session): void {
  models
    .command('list')
    .description('what is installed')
    .option('--json', 'as JSON')
    .action(async ({ json }: { json?: true }) => {
      const installed = await installedModels(session, json);
      if (json) session.print(JSON.stringify(installed.map(modelFacts), undefined, 2));
      else if (installed.length > 0) session.print(table(installed));
    });
}

type AddArguments = GivenDefaults & {
  as: string;
  kind: AddedKind;
  vae?: string;
  textEncoder?: string;
  distilled?: boolean;
  precision?: (typeof precisions)[number];
  revision?: string;
  trial: boolean;
  json?: true;
};

function defineAdd(models: Command, { store, isForGpus, calledFrom, progress, watched, print }: Session): void {
  const add = models
    .command('add')
    .description('install a model: a .safetensors or .gguf file, a folder, or a repository of the Hugging Face hub')
    .argument('<source>', 'a path, or owner/name or owner/name@revision')
    .requiredOption('--as <name>', 'name to install under, such as sd1.5 or sd2.1')
    .addOption(kindOption)
    .option('--vae <file>', 'a .safetensors file with the autoencoder to use, in place of its own if it has one')
    .addOption(precisionOption)
    .option('--revision <revision>', 'branch, tag or commit of the repository')
    .option('--no-trial', 'do not load it on this machine first, which takes as much memory as drawing with it')
    .option('--json', 'as JSON')
    .addHelpText('after', knownModels)
    .action(async (source: string, options: AddArguments) => {
      const {
        as,
        kind,
        vae,
        textEncoder,
        distilled: isDistilled,
        precision,
        revision,
        trial,
        json,
        ...given
      } = options;
      let untried: string | undefined;
      const tryOut = async (folder: string, stop: AbortSignal): Promise<void> => {
        untried = await tryModel(folder, stop);
      };
      const adding = store.add(source, {
        ...{ as, kind, from: calledFrom, isForGpu: isForGpus },
        ...defined({ vae, textEncoder, isDistilled, precision, revision, defaults: defaultsOf(given) }),
        ...watched,
        ...(trial && { tryOut }),
      });
      const model = await adding.finally(() => progress.end());
      if (json) return void print(JSON.stringify(modelFacts(model), undefined, 2));
      const { source: from, bytes, hash, licence } = model;
      print(`${as} is installed from ${from}: ${formatBytes(bytes)} in ${model.precision}, hash ${shortHash(hash!)}.`);
      if (licence !== undefined)
        print(`Its licence, as its page on the hub says: ${licence}. It binds what you draw; read it there.`);
      if (model.isLinked) print('Its weights are the same files, linked: they take no space a second time.');
      if (untried !== undefined) print(untried);
      for (const note of notesOn(model)) print(note);
    });
  for (const option of [...partOptions, ...defaultOptions]) add.addOption(option);
}

function defineVerify(models: Command, session: Session): void {
  const { store, progress, watched, print, exitWith } = session;
  models
    .command('verify')
    .description(
      'read every file again and compare it with what was installed; darkroom.json may be changed, and is checked',
    )
    .argument('[name]', 'a model; all of them when none is given')
    .option('--json', 'as JSON')
    .action(async (name: string | undefined, { json }: { json?: true }) => {
      const results: object[] = [];
      const names = name ? [name] : (await installedModels(session, json)).map((model) => model.name);
      if (names.length === 0) exitWith(exitCodes.failed);
      for (const each of names) {
        const sentence = await store.verify(each, watched).then(
          (report) => ({ ok: report.ok, text: verdict(report), report }),
          (error: unknown) => {
            if (!(error instanceof ModelStoreError) || error.code !== 'InvalidModel') throw error;
            return {
              ok: false,
              text: withFaults(`${each}:`, error.message),
              report: { name: each, ok: false, problem: error.message },
            };
          },
        );
        progress.end();
        if (!json) print(sentence.text);
        results.push(sentence.report);
        if (!sentence.ok) exitWith(exitCodes.failed);
      }
      if (json) print(JSON.stringify(results, undefined, 2));
    });
}

function defineRemove(models: Command, { store, print, exitWith, ask }: Session): void {
  models
    .command('remove')
    .description('remove a model')
    .argument('<name>', 'a model')
    .option('--force', 'do not ask before the bundled model is removed')
    .option('--json', 'as JSON')
    .action(async (name: string, { force, json }: { force?: true; json?: true }) => {
      if (name === demoModel && !force && !(await ask?.(bundledQuestion))) {
        print(json ? JSON.stringify({ removed: [] }) : `${name} stays. With --force it is removed without a question.`);
        return exitWith(exitCodes.failed);
      }
      await store.remove(name);
      print(json ? JSON.stringify({ removed: [name] }) : `${name} is removed.`);
    });
}

function table(models: readonly InstalledModel[]): string {
  const rows = models.map((model) => {
    const { name, hash, bytes, family = '-', kind, nativeSize, precision = '-', source = 'found in place' } = model;
    const problem = inOneLine(modelProblem(model) ?? '');
    if (hash === undefined) return [name, '-', '-', '-', '-', '-', `cannot be used: ${problem}`];
    const pixels = `${nativeSize} px`;
    const what = kind === 'control' ? `${family} control` : family;
    return [
      name,
      what,
      pixels,
      precision,
      shortHash(hash),
      formatBytes(bytes),
      problem ? `${source}. ${problem}` : source,
    ];
  });
  return textTable([['NAME', 'FAMILY', 'EDGE', 'PRECISION', 'HASH', 'SIZE', 'SOURCE'], ...rows]).join('\n');
}
