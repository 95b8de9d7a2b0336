/** The service is already running, so there is nothing to do. */
export class AlreadyRunningError extends Error {
  constructor(
    readonly pid: number,
    readonly url: string | undefined,
  ) {
    super(
      url
        ? `Darkroom is already running at ${url} (process ${pid}).`
        : `Darkroom is already being started by process ${pid}.`,
    );
    this.name = 'AlreadyRunningError';
  }
}
