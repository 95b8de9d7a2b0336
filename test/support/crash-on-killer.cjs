const { parentPort } = require('node:worker_threads');

/** In an engine thread: calls `fault` after the second step of each drawing whose prompt has the word "killer". */
module.exports = function crashOnKiller(fault) {
  const killers = new Set();
  parentPort.on('message', ({ type, id, request }) => {
    if (type === 'draw' && request.prompt.includes('killer')) killers.add(id);
  });
  parentPort.postMessage = new Proxy(parentPort.postMessage, {
    apply(post, port, args) {
      post.apply(port, args);
      const [{ type, id, step }] = args;
      if (type === 'progress' && killers.has(id) && step >= 2) fault();
    },
  });
};
