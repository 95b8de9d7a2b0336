import { misconfiguredExitCode } from './exit-codes';
import { DataFolderError, failureToStart, StartError } from './start-error';

const systemError = (code: string): Error => Object.assign(new Error(`${code}: it is so`), { code });

describe(failureToStart.name, () => {
  it.each([
    ['a known cause', new StartError('It is not there.', 7), { text: 'It is not there.', exitCode: 7 }],
    ['an error of the system', systemError('EMFILE'), { text: 'EMFILE: it is so', exitCode: 1 }],
  ])('says %s plainly', (_, error, said) => {
    expect(failureToStart(error)).toEqual(said);
  });

  it('says where a fault of the program is', () => {
    expect(failureToStart(new TypeError('x is undefined')).text).toContain(__filename);
  });
});

describe(DataFolderError.name, () => {
  it.each([
    ['EACCES', misconfiguredExitCode],
    ['EEXIST', misconfiguredExitCode],
    ['EROFS', misconfiguredExitCode],
    ['ENOSPC', 1],
    ['EIO', 1],
  ])('of %s ends the process with exit code %i', (code, exitCode) => {
    const error = new DataFolderError('/data', systemError(code));
    expect(error).toMatchObject({
      message: `The data folder /data cannot be written (${code}): set DATA_DIR to another one.`,
      exitCode,
    });
  });
});
