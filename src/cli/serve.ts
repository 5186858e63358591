import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { AppError } from '../errors.ts'
import { command } from './command.ts'

const root = new URL('../../', import.meta.url)
/** `src` in the checkout, `dist` in an installed package. */
const code = new URL('../', import.meta.url)
const main = fileURLToPath(new URL(import.meta.url.endsWith('.ts') ? './main.ts' : './main.js', code))

/** The options that `npm start` gives to Node, so that both start the service in the same way. */
const nodeOptions = (): readonly string[] => {
  const { scripts } = JSON.parse(readFileSync(new URL('package.json', root), 'utf8')) as {
    readonly scripts: { readonly start: string }
  }
  const words = scripts.start.split(' ')
  return words
    .slice(words.indexOf('node') + 1, -1)
    .map((option) =>
      option.startsWith('./src/') ? fileURLToPath(new URL(option.slice('./src/'.length), code)) : option,
    )
}

/** The arguments of Node that start the service. */
export const serviceArguments = (): readonly string[] => [...nodeOptions(), main]

export const serveCommand = command({
  name: 'serve',
  summary: 'start the service here, in the foreground',
  description:
    'Starts the service as npm start does, with the settings of the environment and with SVC_DATA_DIR in this directory. ' +
    'This process becomes the service: signals reach it, and its exit code is that of the service. SIGTERM or Ctrl-C stops ' +
    'it in order, a second one after half a second at once.',
  examples: ['svc serve', 'PORT=9000 SVC_DATA_DIR=/var/lib/svc svc serve'],
  run() {
    if (process.platform === 'win32' || process.execve === undefined)
      throw new AppError('bad_request', 'svc serve needs Linux or macOS')
    return process.execve(process.execPath, [process.execPath, ...serviceArguments()])
  },
})
