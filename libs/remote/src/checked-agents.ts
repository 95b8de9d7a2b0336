import type { LookupAddress, LookupAllOptions } from 'node:dns';
import { Agent as HttpAgent, type ClientRequest, type IncomingMessage, request, type RequestOptions } from 'node:http';
import { Agent as HttpsAgent, request as requestHttps } from 'node:https';
import { isIP, type LookupFunction, Socket } from 'node:net';
import { isRefusedAddress } from '@app/domain';

/** The address that a host is or resolves to is not allowed. */
export class AddressRefusedError extends Error {
  readonly code = 'ERR_ADDRESS_REFUSED';

  constructor() {
    super('The address is private, loopback or link-local, which is not allowed.');
  }
}

type LookUpAll = (hostname: string, options: LookupAllOptions) => Promise<LookupAddress[]>;

/** Connects only to a checked address: the look-up for the connection is the one that is checked. */
const lookupFunction =
  (lookUp: LookUpAll, allowPrivate: boolean): LookupFunction =>
  (hostname, options, callback) => {
    lookUp(hostname, { ...options, all: true }).then(
      (addresses) => {
        // A name with both a public and a private address is an attempt to reach the private one.
        if (!allowPrivate && addresses.some(({ address }) => isRefusedAddress(address)))
          return callback(new AddressRefusedError(), []);
        if (options.all) return callback(null, addresses);
        callback(null, addresses[0].address, addresses[0].family);
      },
      (error: NodeJS.ErrnoException) => callback(error, []),
    );
  };

function checked<A extends HttpAgent>(agent: A, lookup: LookupFunction, allowPrivate: boolean): A {
  const connect = agent.createConnection.bind(agent);
  agent.createConnection = (options, callback) => {
    const host = options.host ?? '';
    if (allowPrivate || isIP(host) === 0 || !isRefusedAddress(host)) return connect({ ...options, lookup }, callback);
    const error = new AddressRefusedError();
    // The agent uses the first result of the callback; the error of a returned socket would come before
    // anybody listens for it.
    if (callback) callback(error, new Socket());
    return callback ? undefined : new Socket().destroy(error);
  };
  return agent;
}

/** The agents of one request. Unless `allowPrivate`, they refuse addresses for which `isRefusedAddress` is true. */
export function checkedAgents(
  allowPrivate: boolean,
  lookUp: LookUpAll,
): { httpAgent: HttpAgent; httpsAgent: HttpsAgent } {
  const lookup = lookupFunction(lookUp, allowPrivate);
  return {
    httpAgent: checked(new HttpAgent(), lookup, allowPrivate),
    httpsAgent: checked(new HttpsAgent(), lookup, allowPrivate),
  };
}

/** Informational answers (1xx) before the answer: servers send one or two. */
const mostInformation = 16;

/** A server sends informational answers without end, each of which costs time of the process. */
export class InformationError extends Error {
  override readonly name = 'InformationError';
  readonly code = 'ERR_INFORMATION';

  constructor() {
    super(`The server sent more than ${mostInformation} informational answers.`);
  }
}

const transport = {
  request(options: RequestOptions, answer: (response: IncomingMessage) => void): ClientRequest {
    const sent = (options.protocol === 'https:' ? requestHttps : request)(options, answer);
    let count = 0;
    sent.on('information', () => {
      if (++count > mostInformation) sent.destroy(new InformationError());
    });
    return sent;
  },
};

/** Settings of axios: only these agents connect, and the answer is streamed as it comes. */
export const plainRequest = {
  adapter: 'http',
  transport,
  proxy: false,
  maxRedirects: 0,
  responseType: 'stream',
  decompress: false,
  validateStatus: () => true,
} as const;
