export { AddressRefusedError, checkedAgents, InformationError, plainRequest } from './checked-agents';
export { DnsLookUps } from './dns-look-ups';
export { readBody } from './read-body';
export { type RemoteBody, RemoteError, RemoteFiles } from './remote-files';
