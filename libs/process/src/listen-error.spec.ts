import { misconfiguredExitCode } from './exit-codes';
import { ListenError } from './listen-error';

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
