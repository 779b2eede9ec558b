# Starts a server whose command leaves processes in sessions of their own and without
# an environment, kills the server, and waits until none of them is left.
call='{"command":"sh","args":["-c","(env -i /bin/setsid /bin/sleep 4321 &); (setsid sleep 4321 &); sleep 4321 & sleep 1; echo > up; sleep 4321"]'
cat > requests <<END
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"exec","arguments":$call,"cwd":"$PWD","env":{},"stdout":true,"stderr":true}}}
END
rm -f up
(cat requests; exec sleep 300) | perstack-base serve --sandbox "$mode" > answers 2>&1 &
server=$!
for _ in $(seq 300); do [ -e up ] && break; sleep 0.2; done
left() { ps | grep '[s]leep 4321'; }
left
[ "$(left | wc -l)" -ge 4 ] || { cat answers; exit 3; }
kill -9 "$server"
for _ in $(seq 300); do left > /dev/null || exit 0; sleep 0.2; done
echo "they survived:"
left
exit 4
