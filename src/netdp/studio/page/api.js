// Questions to the studio's server. The token stands behind the # of the address; it goes into a header and nowhere else.
const token = new URLSearchParams(location.hash.slice(1)).get("token") || "";

async function opened(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { ...options.headers, "x-netdp-token": token } });
  if (!answer.ok) {
    const text = await answer.text();
    let reason = text;
    try { reason = JSON.parse(text).error; } catch { /* plain text */ }
    throw new Error(reason || `the studio answered ${answer.status}`);
  }
  return answer;
}

// Lines of JSON as they come.
async function* lines(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) break;
    rest += value;
    const parts = rest.split("\n");
    rest = parts.pop();
    for (const part of parts) if (part) yield JSON.parse(part);
  }
}

async function outcome(answer, onprogress) {
  for await (const line of lines(answer)) {
    if ("progress" in line) onprogress?.(line.progress);
    else if ("error" in line) throw new Error(line.error);
    else return line.answer;
  }
  throw new Error("the studio went away; is it still running?");
}

export const running = async () => (await opened("/api/running")).json();
export const start = async () => (await opened("/api/start")).json();

export async function ask(question, asked, { signal, onprogress } = {}) {
  const answer = await opened(`/api/${question}`, { method: "POST", body: JSON.stringify(asked), signal, headers: { "content-type": "application/json" } });
  return outcome(answer, onprogress);
}

export async function upload(file) {
  const answer = await opened(`/api/upload?name=${encodeURIComponent(file.name)}`, { method: "POST", body: file });
  return outcome(answer);
}

export async function follow(callback, signal) {
  for await (const line of lines(await opened("/api/watch", { signal }))) callback(line);
}
