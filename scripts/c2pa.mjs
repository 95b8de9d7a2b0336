import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { pythonEnvironment } from './python-environment.mjs';

/**
 * Prints, as a line of JSON for each picture that is named, what C2PA's library for Python reads of it. Exit status 77
 * means that Python or PyPI is not reachable.
 */
const program = `
import json, sys, c2pa
for file in sys.argv[1:]:
    read = json.loads(c2pa.Reader(file).json())
    manifest = read['manifests'][read['active_manifest']]
    actions = [each for part in manifest['assertions'] if part['label'].startswith('c2pa.actions') for each in part['data']['actions']]
    ingredients = [each['title'] for each in manifest.get('ingredients', [])]
    print(json.dumps({'state': read['validation_state'], 'actions': [each['action'] for each in actions], 'ingredients': ingredients}))
`;
const bin = pythonEnvironment(['c2pa-python==0.38.0']);
const { status } = spawnSync(join(bin, 'python'), ['-c', program, ...process.argv.slice(2)], { stdio: 'inherit' });
process.exitCode = status ?? 1;
