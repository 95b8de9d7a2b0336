import { DataFolderError, failureToStart, ListenError, misconfiguredExitCode, StartError } from './start-error';

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

describe(ListenError.name, () => {
  const errorOf = (code: string, hostVariable?: string) =>
    new ListenError({ code }, { port: 80, host: '127.0.0.1', variable: 'INFERENCE_HEALTH_PORT', hostVariable });

  it('ends a process for good only where another start would end the same', () => {
    const codes = ['EACCES', 'ENOTFOUND', 'EADDRINUSE', 'EADDRNOTAVAIL', 'EAI_AGAIN'];
    const lasting = codes.filter((code) => errorOf(code).exitCode === misconfiguredExitCode);
    expect(lasting).toEqual(['EACCES', 'ENOTFOUND']);
  });

  it('blames HOST only where it is what is listened on', () => {
    expect(errorOf('EADDRNOTAVAIL', 'HOST').message).toBe('HOST is "127.0.0.1", which is no address of this machine.');
    expect(errorOf('EADDRNOTAVAIL').message).toBe(
      'INFERENCE_HEALTH_PORT is 80, to be listened on at 127.0.0.1, which is no address of this machine.',
    );
  });
});
