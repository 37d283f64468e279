/** What to do when there are no sessions yet. */

export function NoSessions() {
  return (
    <section class="note empty" data-testid="empty">
      <h2>No sessions yet</h2>
      <p>Sessions appear here as soon as an agent works. To get started:</p>
      <dl>
        <dt>
          <code>brimline setup</code>
        </dt>
        <dd>installs Brimline's hooks and status line in your agents; then use them as usual.</dd>
        <dt>
          <code>brimline demo</code>
        </dt>
        <dd>replays a recorded session in the terminal.</dd>
        <dt>
          <code>brimline status</code>
        </dt>
        <dd>lists the sessions that the agents' transcripts already have.</dd>
      </dl>
    </section>
  );
}

/** The same at a fleet's server, which has sessions of other machines only. */
export function NoFleetSessions({ title = "No sessions yet" }: { title?: string }) {
  return (
    <section class="note empty" data-testid="empty">
      <h2>{title}</h2>
      <p>Sessions appear here as soon as a machine reports them:</p>
      <dl>
        <dt>
          <code>[uplink]</code>
        </dt>
        <dd>
          in the settings of a machine: its daemon reports all sessions, and delivers messages.
        </dd>
        <dt>
          <code>brimline fleet snippet</code>
        </dt>
        <dd>prints settings for agents that report by their telemetry alone.</dd>
      </dl>
    </section>
  );
}
