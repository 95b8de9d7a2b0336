/** Why the service does not start, in one sentence for the user. */
export class StartError extends Error {
  /** @param exitCode of this process, which says to whoever restarts it whether that may help */
  constructor(
    message: string,
    readonly exitCode = 1,
  ) {
    super(message);
    this.name = 'StartError';
  }
}

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
