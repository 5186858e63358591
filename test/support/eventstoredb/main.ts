import { parseArgs } from 'node:util'
import { startStandIn } from './index.ts'

/** Serves until SIGTERM; the first line it prints is its URL. */
const { values } = parseArgs({ options: { port: { type: 'string', default: '0' } } })
const standIn = await startStandIn({ port: Number(values.port) })
process.once('SIGTERM', () => void standIn.stop())
console.log(standIn.url)
