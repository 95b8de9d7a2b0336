/** The answer of the service, and its whole response: headers, status, URL. Its body has been read. */
export interface WithResponse<T> {
  data: T;
  response: Response;
}

/** The data of an answer. `withResponse()` gives the response too. */
export class Reply<T> extends Promise<T> {
  /** `then` and its like make plain promises. */
  static override get [Symbol.species](): PromiseConstructor {
    return Promise;
  }

  constructor(private readonly work: Promise<WithResponse<T>>) {
    super((resolve, reject) => void work.then(({ data }) => resolve(data), reject));
  }

  withResponse(): Promise<WithResponse<T>> {
    // The error goes to the one who waits for the response.
    this.catch(() => undefined);
    return this.work;
  }
}
