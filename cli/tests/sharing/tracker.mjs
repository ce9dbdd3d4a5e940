// The reference tracker or its client, from the npm package `bittorrent-tracker`.
//
//   node tracker.mjs FOLDER server            prints the port it listens on
//   node tracker.mjs FOLDER client URL        two clients meet at URL; prints what they saw
//
// FOLDER is where the package is installed. The client's WebRTC library is replaced by one that
// makes descriptions of a few letters: only the protocol is looked at.
import { register } from 'node:module'

const [folder, role, url] = process.argv.slice(2)
const room = `file://${folder}/node_modules/bittorrent-tracker/`

const peer = `data:text/javascript,${encodeURIComponent(`
  import { EventEmitter } from 'node:events'
  export default class Peer extends EventEmitter {
    static WEBRTC_SUPPORT = true
    constructor (opts) {
      super()
      if (opts.initiator) queueMicrotask(() => this.emit('signal', { type: 'offer', sdp: 'from me' }))
    }
    signal (description) {
      this.heard = description
      if (description.type === 'offer') {
        queueMicrotask(() => this.emit('signal', { type: 'answer', sdp: 'to ' + description.sdp }))
      }
    }
    destroy () {}
  }`)}`
register(`data:text/javascript,${encodeURIComponent(`
  export function resolve (name, context, next) {
    if (name.startsWith('@thaunknown/simple-peer')) return { url: ${JSON.stringify(peer)}, shortCircuit: true }
    return next(name, context)
  }`)}`)

if (role === 'server') {
  const { default: Server } = await import(`${room}server.js`)
  const server = new Server({ udp: false, http: false, ws: true, stats: false })
  server.on('warning', error => console.log(`warning: ${error.message}`))
  server.listen(0, '127.0.0.1', () => console.log(`port ${server.ws.address().port}`))
} else {
  const { default: Client } = await import(`${room}client.js`)
  const infoHash = 'c3ff00'.padEnd(40, '8')
  const make = (name, left) => {
    const peerId = name.padEnd(40, '0')
    const getAnnounceOpts = () => ({ left })
    // Clients of one process share a socket to one address, which is not what is to be seen here.
    const announce = [`${url}?${name}`]
    const client = new Client({ infoHash, peerId, announce, port: 1, wrtc: {}, getAnnounceOpts })
    client.on('warning', error => console.log(`${name} warning: ${error.message}`))
    client.on('error', error => console.log(`${name} error: ${error.message}`))
    return client
  }
  const once = (client, event) => new Promise(resolve => client.once(event, resolve))
  const seeder = make('aa', 0)
  const leecher = make('bb', 9)
  seeder.start()
  const first = await once(seeder, 'update')
  console.log(`first: ${first.complete} ${first.incomplete} ${first.interval}`)
  const met = once(leecher, 'peer')
  const offered = once(seeder, 'peer')
  leecher.start()
  const theirs = await offered
  console.log(`offer: ${theirs.id} ${theirs.heard?.sdp ?? 'none'}`)
  const peer = await met
  // The answer is given to the peer right after it is shown.
  await new Promise(resolve => setTimeout(resolve, 50))
  console.log(`answer: ${peer.id} ${peer.heard.sdp}`)
  leecher.complete({ left: 0 })
  await once(leecher, 'update')
  const scraped = once(leecher, 'scrape')
  leecher.scrape()
  const counts = await scraped
  console.log(`scrape: ${counts.complete} ${counts.incomplete} ${counts.downloaded}`)
  process.exit(0)
}
