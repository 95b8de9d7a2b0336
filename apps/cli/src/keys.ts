import 'reflect-metadata';
import { runKeys } from './keys-command';

void runKeys(process.argv.slice(2), process).then((code) => {
  process.exitCode = code;
});
