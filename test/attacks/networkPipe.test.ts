import { once } from 'node:events'
import { createServer, type AddressInfo } from 'node:net'
import { attackSuite } from './attack.ts'
import { openHostService } from './hostService.ts'
import { residentMibOf } from './processes.ts'
import { portOf, runIn } from './target.ts'
import { resultOf } from './tries.ts'

/** Opens the pipe of the process beside Node's modules, as code does that removed their replacements. */
const PIPE = `
  const net = await import('node:net')
  const frame = (kind, id, payload = Buffer.alloc(0)) => {
    const header = Buffer.alloc(9)
    header[0] = kind
    header.writeUInt32BE(id, 1)
    header.writeUInt32BE(payload.length, 5)
    return Buffer.concat([header, payload])
  }
  const open = (id, host = '127.0.0.1', port = 80) =>
    frame(1, id, Buffer.from(JSON.stringify({ host, port, family: 0 })))
  const pipe = new net.Socket({ fd: 4 })
  pipe.on('error', () => {})
`

attackSuite('the pipe between functions and the network', [
  {
    id: 'A/28-network/multiplexer',
    attempt: 'abuse of the pipe to the service: garbage, 10,000 opens, reused ids, window violations',
    severity: 'high',
    async run(target) {
      const { api } = target.victim
      const abuse = (bytes: string) => `
        ${PIPE}
        pipe.write(${bytes})
        await new Promise((resolve) => setTimeout(resolve, 15000))
        return 'still runs'
      `
      const outcomes: string[] = []
      for (const [name, bytes] of [
        ['garbage', `Buffer.alloc(100000, 'x')`],
        ['10,000 opens', `Buffer.concat(Array.from({ length: 10000 }, (_, id) => open(id + 1)))`],
        ['reused id', `Buffer.concat([open(1), open(1)])`],
        ['data without a stream', `frame(5, 1, Buffer.alloc(40000))`],
        ['endless frame', `Buffer.from([5, 0, 0, 0, 1, 255, 255, 255, 255])`],
      ]) {
        const run = await runIn(target.attacker.api, {
          'main.ts': `export const attack = async () => { ${abuse(bytes ?? '')} }`,
        })
        if (run.status === 'succeeded') throw new Error(`went through: ${name}`)
        outcomes.push(`${name}: ${run.error?.code}`)
        await api.get('/projects') // the service answers other tenants
      }
      return outcomes.join(', ')
    },
  },
  {
    id: 'A/28-network/own-frames',
    attempt: 'code that writes correct frames to the pipe itself, to reach loopback and the service',
    severity: 'high',
    async run(target) {
      const victim = await openHostService()
      try {
        const run = await runIn(
          target.attacker.api,
          {
            'main.ts': `export const attack = async (hosts, ports) => {
              ${PIPE}
              let received = Buffer.alloc(0)
              pipe.on('data', (chunk) => { received = Buffer.concat([received, chunk]) })
              let id = 0
              for (const host of hosts) for (const port of ports) pipe.write(open(++id, host, port))
              pipe.write(frame(2, ++id, Buffer.from(JSON.stringify({ host: 'localhost', family: 0 }))))
              const answers = []
              while (answers.length < id) {
                await new Promise((resolve) => setTimeout(resolve, 20))
                while (received.length >= 9 && received.length >= 9 + received.readUInt32BE(5)) {
                  const end = 9 + received.readUInt32BE(5)
                  answers.push([received[0], received.toString('utf8', 9, end)])
                  received = received.subarray(end)
                }
              }
              return answers
            }`,
          },
          [
            '127.0.0.1',
            'localhost',
            '::1',
            '::ffff:127.0.0.1',
            '0.0.0.0',
            '2130706433',
            '0177.1',
            'LOCALHOST.',
          ],
          [victim.port, portOf(target)],
        )
        const answers = resultOf(run) as readonly (readonly [number, string])[]
        const through = answers.filter(([, text]) => !text.includes('ERR_EGRESS_REFUSED'))
        if (through.length > 0 || victim.reached > 0)
          throw new Error(`went through: ${JSON.stringify(through)}`)
        return `refused by the service: ${answers.length} of ${answers.length}`
      } finally {
        victim.close()
      }
    },
  },
  {
    id: 'A/28-network/unread',
    attempt: 'large downloads over all connections of a process that reads none of them',
    severity: 'high',
    async run(target) {
      const data = Buffer.alloc(1 << 20)
      const source = createServer((socket) => {
        socket.on('error', () => {})
        const more = () => {
          while (socket.write(data));
        }
        socket.on('drain', more)
        more()
      }).listen(0, '127.0.0.1')
      await once(source, 'listening')
      const { port } = source.address() as AddressInfo
      try {
        const fresh = await target.fresh({ SVC_EGRESS_ALLOW: `127.0.0.1:${port}` })
        await runIn(fresh.attacker.api, { 'main.ts': 'export const attack = () => 1' })
        const { pid = 0 } = fresh.server.process
        const before = residentMibOf(pid)
        const run = await runIn(
          fresh.attacker.api,
          {
            'main.ts': `export const attack = async (port) => {
              ${PIPE}
              pipe.pause()
              for (let id = 1; id <= 128; id++) pipe.write(open(id, '127.0.0.1', port))
              await new Promise((resolve) => setTimeout(resolve, 3000))
              return 'done'
            }`,
          },
          port,
        )
        const after = residentMibOf(pid)
        if (after === 0) throw new Error('went through: the service ended')
        const grown = after - before
        if (grown > 64) throw new Error(`went through: the service grew by ${grown} MiB`)
        return `run ${run.status}; the service grew by ${grown} MiB`
      } finally {
        source.close()
      }
    },
  },
])
