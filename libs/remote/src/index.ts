export { AddressRefusedError, checkedAgents, plainRequest } from './checked-agents';
export { DnsLookUps } from './dns-look-ups';
export { RemoteError, RemoteFiles } from './remote-files';
