import { BlockList, isIP } from 'node:net';
import { UnprocessableError } from '../errors/domain-error';

/**
 * IPv4 blocks that are not of the public internet (IANA, special-purpose addresses), and Azure's host that hands out
 * secrets.
 */
const closedV4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12', '192.0.0.0/24'],
  ...['192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  ...['224.0.0.0/4', '240.0.0.0/4', '168.63.129.16/32'],
];
/** Blocks inside 2000::/3 that are not of the public internet, with Teredo and 6to4, which carry an IPv4 address. */
const closedV6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const blocksOf = (subnets: readonly string[]): BlockList => {
  const blocks = new BlockList();
  for (const [address, prefix] of subnets.map((subnet) => subnet.split('/')))
    blocks.addSubnet(address, Number(prefix), address.includes(':') ? 'ipv6' : 'ipv4');
  return blocks;
};
const closed = blocksOf([...closedV4, ...closedV6]);
/** The only IPv6 block from which unicast addresses were ever given out. */
const publicV6 = blocksOf(['2000::/3']);
/**
 * An IPv4 address in IPv6: mapped, or behind a translator (RFC 6052), by which a network without IPv4 reaches IPv4
 * hosts.
 */
const carriesV4 = blocksOf(['::ffff:0:0/96', '64:ff9b::/96']);

/**
 * Whether an address is refused unless the operator allows it: it is private, loopback, link-local, multicast,
 * reserved, or carries an IPv4 address that is.
 * @param address of IPv4 in four decimal parts, or of IPv6 without brackets; anything else is refused.
 */
export function isRefusedAddress(address: string): boolean {
  const [plain] = address.split('%');
  const version = isIP(plain);
  if (version === 4) return closed.check(plain, 'ipv4');
  if (version !== 6) return true;
  if (carriesV4.check(plain, 'ipv6')) return closed.check(lastFourBytes(plain), 'ipv4');
  return !publicV6.check(plain, 'ipv6') || closed.check(plain, 'ipv6');
}

/** A refused address, in messages. */
export const refusedAddress = 'a private, loopback, link-local or reserved address';

/**
 * The host of a URL if its address, in any spelling, is refused, or if it is a local name. Any other name is looked up
 * at the connection.
 */
export function refusedHost(url: string): string | undefined {
  // A URL normalises every spelling of IPv4 (decimal, octal, hexadecimal, short).
  const host = (URL.parse(url)?.hostname ?? '').replace(/^\[|\]$/g, '');
  return (isIP(host) !== 0 && isRefusedAddress(host)) || isLocalName(host) ? host : undefined;
}

/**
 * Refuses a webhook by its host, as `refusedHost` does.
 * @param pointer of the field with the webhook.
 * @throws UnprocessableError
 */
export function assertReceiverAllowed(
  webhook: string | null | undefined,
  allowPrivate: boolean,
  pointer = '/webhook',
): void {
  const host = !webhook || allowPrivate ? undefined : refusedHost(webhook);
  if (!host) return;
  const message = `The webhook's host ${host} is ${refusedAddress}, to which nothing is delivered unless the operator sets WEBHOOK_ALLOW_PRIVATE.`;
  throw new UnprocessableError('WebhookAddressRefused', message, [
    { pointer, message: `must not be ${refusedAddress}` },
  ]);
}

/** Names of this machine, and of networks that are not the internet (RFC 6761, 6762, 8375; ICANN). */
const localDomains = ['localhost', 'local', 'internal', 'home.arpa'];

/** Whether a name can have no public address: one of `localDomains`, or a word without a dot. */
export function isLocalName(host: string): boolean {
  const name = host.toLowerCase().replace(/\.$/, '');
  if (isIP(name) !== 0 || name === '') return false;
  return !/[.:]/.test(name) || localDomains.some((domain) => name === domain || name.endsWith(`.${domain}`));
}

function lastFourBytes(address: string): string {
  const dotted = address.slice(address.lastIndexOf(':') + 1);
  if (dotted.includes('.')) return dotted;
  // The URL parser normalises an address: at most one "::", and no leading zeros.
  const parts = new URL(`http://[${address}]`).hostname.slice(1, -1).split(':');
  const [high, low] = [parts.at(-2) || '0', parts.at(-1) || '0'].map((part) => parseInt(part, 16));
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}
