import { misconfiguredExitCode } from './exit-codes';
import { DataFolderError, failureToStart, StartError } from './start-error';

const errorWith = (code: string, more?: object): Error =>
  Object.assign(new Error(`${code}: it is so`), { code, ...more });

describe(failureToStart.name, () => {
  it.each([
    ['a known cause', new StartError('It is not there.', 7), { text: 'It is not there.', exitCode: 7 }],
    ['an error of the system', errorWith('EMFILE', { syscall: 'open' }), { text: 'EMFILE: it is so', exitCode: 1 }],
  ])('says %s plainly', (_, error, said) => {
    expect(failureToStart(error)).toEqual(said);
  });

  it.each([
    ['a fault of the program', new TypeError('x is undefined')],
    ['a misuse of Node.js', errorWith('ERR_INVALID_ARG_TYPE')],
    ['a missing module', errorWith('MODULE_NOT_FOUND')],
    ['a wrong statement', errorWith('42703', { severity: 'ERROR' })],
  ])('says where %s is', (_, error) => {
    expect(failureToStart(error).text).toContain(__filename);
  });
});

describe(DataFolderError.name, () => {
  it.each([
    ['EACCES', misconfiguredExitCode],
    ['EROFS', misconfiguredExitCode],
    ['ENOSPC', 1],
    ['EIO', 1],
  ])('of %s ends the process with exit code %i', (code, exitCode) => {
    expect(new DataFolderError('/data', errorWith(code))).toMatchObject({
      message: `The data folder /data cannot be written (${code}): set DATA_DIR to another one.`,
      exitCode,
    });
  });

  it.each(['EEXIST', 'ENOTDIR'])('of %s says that a file is in the way', (code) => {
    expect(new DataFolderError('/data', errorWith(code))).toMatchObject({
      message: 'The data folder /data cannot be made, because a file is in the way: set DATA_DIR to another one.',
      exitCode: misconfiguredExitCode,
    });
  });
});
