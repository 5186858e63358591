import { onOneLine } from '../logger.ts'
import { type CliCommand, command } from './command.ts'
import { WrongUsage } from './wrongUsage.ts'

interface AgentClient {
  readonly title: string
  /** Where the client reads its configuration. */
  readonly file: string
  /** Where the user puts the key. No configuration contains it, because such files are committed. */
  readonly keyAt: string
  readonly config: (url: string) => unknown
}

const serversOf = (server: object) => ({ mcpServers: { svc: server } })

const CLIENTS = {
  claude: {
    title: 'Claude Code',
    file: '.mcp.json in the project',
    keyAt: 'in the environment variable SVC_KEY of the shell that starts claude',
    config: (url) => serversOf({ type: 'http', url, headers: { Authorization: 'Bearer ${SVC_KEY}' } }),
  },
  cursor: {
    title: 'Cursor',
    file: '.cursor/mcp.json in the project',
    keyAt: 'in the environment variable SVC_KEY of the process of Cursor',
    config: (url) => serversOf({ url, headers: { Authorization: 'Bearer ${env:SVC_KEY}' } }),
  },
  vscode: {
    title: 'VS Code',
    file: '.vscode/mcp.json in the project',
    keyAt: 'in the prompt that VS Code shows at the first start of the server',
    config: (url) => ({
      inputs: [{ type: 'promptString', id: 'svc-key', description: 'Key of svc', password: true }],
      servers: { svc: { type: 'http', url, headers: { Authorization: 'Bearer ${input:svc-key}' } } },
    }),
  },
} as const satisfies Readonly<Record<string, AgentClient>>

type ClientName = keyof typeof CLIENTS

const isClient = (text: string): text is ClientName => Object.hasOwn(CLIENTS, text)

const clientIn = (text: string): ClientName => {
  if (isClient(text)) return text
  throw new WrongUsage(
    `expected one of ${Object.keys(CLIENTS).join(', ')}, got ${onOneLine(text.slice(0, 60))}`,
  )
}

export const mcpCommand: CliCommand = command({
  name: 'mcp',
  summary: 'print the configuration for an AI agent (MCP)',
  description:
    'Prints the configuration with which a client of the Model Context Protocol reaches the service. It contains no key: the ' +
    'text says where to put one. Give the agent a key with the permissions that it needs.',
  ofEnvironment: true,
  options: {
    client: {
      value: 'NAME',
      description: `the client: ${Object.keys(CLIENTS).join(', ')} (default: claude)`,
      parse: clientIn,
    },
  },
  examples: ['svc mcp', 'svc mcp --client vscode', 'svc mcp --json > .mcp.json'],
  run({ options, url }) {
    const { title, file, keyAt, config } = CLIENTS[options.client ?? 'claude']
    const json = config(`${url()}/mcp`)
    const text = `${title}: ${file}\n\n${JSON.stringify(json, null, 2)}\n\nPut the key ${keyAt}.\n`
    return Promise.resolve({ json, text })
  },
})
