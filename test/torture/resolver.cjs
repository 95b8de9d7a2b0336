/**
 * Preloaded into a process: two names resolve like an attacker's. `rebind.test` alternates between a public address and
 * loopback, starting with the public one; `mixed.test` is both at once.
 */
const dns = require('node:dns');
const { syncBuiltinESMExports } = require('node:module');

/** From a reserved block: it looks public, but is not reachable. */
const outside = { address: '3ffe::1', family: 6 };
const loopback = { address: '127.0.0.1', family: 4 };
const lookup = dns.lookup;
let asked = 0;

dns.lookup = (hostname, options, callback) => {
  if (!['rebind.test', 'mixed.test'].includes(hostname)) return lookup(hostname, options, callback);
  const answers = hostname === 'mixed.test' ? [outside, loopback] : [asked++ % 2 ? loopback : outside];
  const answer = typeof options === 'function' ? options : callback;
  if (options.all) process.nextTick(answer, null, answers);
  else process.nextTick(answer, null, answers[0].address, answers[0].family);
};
const lookupLater = dns.promises.lookup;
dns.promises.lookup = (hostname, options = {}) =>
  ['rebind.test', 'mixed.test'].includes(hostname)
    ? new Promise((resolve, reject) =>
        dns.lookup(hostname, options, (error, found, family) =>
          error ? reject(error) : resolve(options.all ? found : { address: found, family }),
        ),
      )
    : lookupLater(hostname, options);
syncBuiltinESMExports();
